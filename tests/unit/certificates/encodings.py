"""Certificates of encoded sets, of both kinds, with any words in them."""

from __future__ import annotations

from typing import Any

from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding

__all__ = ["claimed", "unclaimed"]


def facts(words: str = "words") -> dict[str, Any]:
    return {
        "id": words,
        "classes": 10,
        "columns": 1280,
        "rows_sampled": 40_000,
        "rows_released": 2_000,
        "mix": 200,
        "mask_dim": 500,
        "blocks": 1,
        "noise": 0.0159,
        "rows_are": words,
        "public_rows": 0,
        "queries_leave": False,
        "counted": True,
        "pool_public": (words,),
        "assumptions": (words,),
        "not_promised": (words,),
        "leakcap_version": words,
    }


def unclaimed(words: str = "words", **more: Any) -> UnclaimedEncoding:
    return UnclaimedEncoding(**{"kind": "no_claim", "why": words, **facts(words), **more})


def claimed(words: str = "words", **more: Any) -> ObfuscationCertificate:
    figures = {
        "kind": "obfuscation",
        "membership_success": 0.5999,
        "mean_success": 0.561,
        "true_positives": ((0.01, 0.041), (0.001, 0.0071)),
        "confidence": 1 - 1e-6,
        "theorems": (words,),
    }
    return ObfuscationCertificate(**{**figures, **facts(words), **more})
