"""CIFAR-10 as the paper has it: 60,000 pictures of 3,072 numbers between 0 and 1, and their second moments, exactly."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.datasets import cifar10, data_path
from leakcap.errors import InputError

__all__ = ["PIXELS", "Moments", "pictures"]

PIXELS, SCALE = 3072, 255.0
# Of the files: figures of made-up pictures would mean nothing.
DIGESTS = {
    "cifar10_train_1.webp": "d846d50982a25180a49f9d20f20bbca998c827af138dc6b873707d023a0eb602",
    "cifar10_train_2.webp": "6b96dbaa3760025205087be748688ce4278f9d51fe70e6661b4bdb01f883d8ab",
    "cifar10_train_3.webp": "004affa91ee7fc21c699ad0f00e30dfa7bbf76e9001c5b04d116b497ad3cf686",
    "cifar10_train_4.webp": "35798d3cab157fd73981f3bd2fe058dedca553e0a6e256bf4672d3e044e95c57",
    "cifar10_train_5.webp": "e0b08abdd991607043ec6995536e67d071af599b5544783a6e14cba72003977b",
    "cifar10_test.webp": "ea003cfab5c5696f07d1b2b189a3cd0984e8625cbd45f9d3574a5563b9ad10c5",
}
Floats = npt.NDArray[np.float64]


def pictures() -> npt.NDArray[np.uint8]:
    """`(60000, 3072)`, from 0 to 255: the published files and no others."""
    for name, digest in DIGESTS.items():
        if hashlib.sha256(data_path(name).read_bytes()).hexdigest() != digest:
            raise InputError(f"{name} is not the published file: figures of made-up pictures would mean nothing")
    train, _, test, _ = cifar10()
    return np.concatenate([train, test]).reshape(-1, PIXELS)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums and products of pictures, on the scale from 0 to 1."""

    count: int
    sums: Floats
    products: Floats  # (d, d)

    @staticmethod
    def of(pixels: npt.NDArray[np.uint8]) -> Moments:
        d = pixels.shape[1]
        products = np.zeros((d, d))
        for start in range(0, len(pixels), 5000):
            part = pixels[start : start + 5000].astype(np.float64)
            products += part.T @ part
        return Moments(len(pixels), pixels.sum(axis=0, dtype=np.float64) / SCALE, products / SCALE**2)

    def independent(self) -> Floats:
        """Eigenvalues of the covariance of the sum over half of the count, everybody in by a fair coin."""
        return _eigenvalues(self.products) / self.count**2

    def covariance(self) -> Floats:
        """Eigenvalues of the pictures' own covariance: one of them, drawn."""
        return _eigenvalues(self.products / self.count - np.outer(self.sums, self.sums) / self.count**2)

    def fixed_size(self) -> Floats:
        """Eigenvalues of the covariance of the mean of a half, all halves of that size alike."""
        chosen = self.count // 2
        return self.covariance() * (self.count - chosen) / ((self.count - 1) * chosen)


def _eigenvalues(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.eigvalsh(matrix)[::-1].clip(0))
