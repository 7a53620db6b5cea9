"""`python -m leakcap`."""

from leakcap.cli import main

if __name__ == "__main__":
    main()
