"""Texts and pictures as numbers: an embedder takes a list and gives a row of numbers for each.

May import: system.
"""

from sparker.embed.choose import NAMES, choose
from sparker.embed.contract import IMAGES, TEXT, Embedder, SavedEmbedder
from sparker.embed.function import Function
from sparker.embed.normalise import plain_text
from sparker.embed.remembered import Remembered
from sparker.embed.restored import Absent, handed_in, restored
from sparker.embed.tfidf import Tfidf

__all__ = [
    "IMAGES",
    "NAMES",
    "TEXT",
    "Absent",
    "Embedder",
    "Function",
    "Remembered",
    "SavedEmbedder",
    "Tfidf",
    "choose",
    "handed_in",
    "plain_text",
    "restored",
]
