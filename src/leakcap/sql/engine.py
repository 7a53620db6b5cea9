"""DuckDB, locked: read only, no files, no extensions, nothing that can be set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["LocalEngine"]

SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "enable_external_access": "false",
}


class LocalEngine:
    """In this process: for tests, and inside the worker."""

    def __init__(self, path: Path, threads: int = 2, memory: str = "4GB") -> None:
        import duckdb

        self.file = duckdb.connect(str(path), read_only=True)
        for name, value in {**SETTINGS, "threads": str(threads), "memory_limit": f"'{memory}'"}.items():
            self.file.execute(f"SET {name} = {value}")
        self.file.execute("SET lock_configuration = true")

    def run(self, sql: str, tables: dict[str, Any]) -> Any:
        for name, table in tables.items():
            self.file.register(name, table)
        try:
            found = self.file.sql(sql).to_arrow_table()
        finally:
            for name in tables:
                self.file.unregister(name)
        return found

    def close(self) -> None:
        self.file.close()
