"""Model files: one file that holds a fitted model and cannot run code.

``save`` takes a model apart into plain JSON and arrays (`parts`), `container` packs both into a safetensors file with a
digest, `files` puts it on disk in one step. ``load`` goes the other way, and believes nothing: the digest, the class,
the parameters' names, every shape, type and range are checked against `schema` before a model is built.
"""

from __future__ import annotations

from margrove.store.model_file import describe, load, save

__all__ = ["describe", "load", "save"]
