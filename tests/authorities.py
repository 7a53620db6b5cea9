"""Certificate authorities of the tests' own, and certificates of this machine that they sign."""

from __future__ import annotations

import datetime
import ipaddress
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["new_key", "pem_of", "signed"]

NOW = datetime.datetime.now(tz=datetime.UTC)


def new_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def pem_of(key: Any) -> bytes:
    return bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def signed(subject: str, key: Any, by: tuple[str, Any], *, authority: bool = False) -> bytes:
    """A certificate for a key, by an authority's name and key."""
    issuer, own = by
    made = (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(days=1))
        .not_valid_after(NOW + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return bytes(made.sign(own, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def _named(words: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, words)])
