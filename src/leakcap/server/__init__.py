"""The query server: a custodian holds data and a cap, and analysts ask by browser, by JSON or from Python.

A thin skin: it knows who asks and what they may, calls sessions and the ledger, and shows what comes back.
"""
