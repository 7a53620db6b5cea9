"""GROUP BY: groups of one person stay unit-local, groups of several are released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from leakcap.sql.aggregates import NEEDS_RANGE, QUANTILES, Aggregate, SumOf, aggregate, sums_of
from leakcap.sql.by_value import ByValue, by_value
from leakcap.sql.compiling import Compiling, Mapped, calls, text_of
from leakcap.sql.expressions import Expression
from leakcap.sql.program import SqlRelease
from leakcap.sql.quantiles import on_tree
from leakcap.sql.reading import Reader, only
from leakcap.sql.refusals import Node, NotAnswered, refused, shown
from leakcap.sql.relations import NamedColumn, Relation

__all__ = ["GroupClause"]


class GroupClause(Compiling):
    """Groups and what is asked of each."""

    def _keys(self, node: exp.Select, items: Sequence[Node], reader: Reader) -> list[tuple[Node, Expression]]:
        group = node.args.get("group")
        if group is None:
            return []
        only(group, {"expressions", "all"})
        found = []
        listed = [one for one in items if not calls(one)] if group.args.get("all") else group.expressions
        for given in listed:
            one = given
            if isinstance(one, exp.Literal) and not one.is_string:
                place = int(one.this) if one.this.isdigit() else 0
                if not 1 <= place <= len(items):
                    raise refused("GROUP BY takes numbers of columns in the list", one)
                one = items[place - 1]
            elif isinstance(one, exp.Column) and not one.table:
                named = [
                    each for each in items if isinstance(each, exp.Alias) and each.alias.lower() == one.name.lower()
                ]
                if named and not _is_known(one, reader):
                    one = named[0]
            inner = one.this if isinstance(one, exp.Alias) else one
            if calls(inner):
                raise refused("groups cannot be made by an aggregate: ask for it in a query of its own, in FROM", inner)
            found.append((inner, reader.read(inner)))
        return found

    def grouped(
        self, node: exp.Select, whole: Relation, reader: Reader, *, items: Sequence[Node], called: Sequence[Node]
    ) -> tuple[Relation, Mapped]:
        """The relation of groups, and what the nodes of keys and aggregates are called in it."""
        keys = self._keys(node, items, reader)
        asked: dict[str, tuple[Node, Aggregate]] = {}
        for call in called:
            asked.setdefault(text_of(call), (call, aggregate(call, reader)))
        if reader.beside:
            raise refused("a window stands beside rows, not in an aggregate: name it in a query in FROM", node)
        owned = whole.private and any(value.identity is not None and not value.null for _, value in keys)
        letter = "y" if whole.private and not owned else "x"  # columns of a released table keep their names
        names = [self.names.fresh(letter) for _ in keys]
        made = {text: self.names.fresh(letter) for text in asked}
        facts = [
            replace(value, op="column", args=(), value=name, wild=False)
            for (_, value), name in zip(keys, names, strict=True)
        ]
        most = whole.most if owned else None
        values = {text: replace(one.facts(most), value=made[text]) for text, (_, one) in asked.items()}
        if whole.private and not owned:
            before = len(self.releases)
            text = self._released(
                whole, dict(zip(names, (value for _, value in keys), strict=True)), asked=asked, made=made
            )
            texts = tuple(shown(one) for one, _ in keys)
            self.releases[before:] = [replace(one, key_texts=texts) for one in self.releases[before:]]
            facts = [replace(one, private=False, identity=None) for one in facts]
            values = {
                key: replace(
                    one, private=False, null=True, range=None, wild=False, levels=None, kind="float", digits=None
                )
                for key, one in values.items()
            }
            relation = Relation(text, (), unique=frozenset([frozenset(names)]), origins={})
        else:
            listed = [f"{value.safe} AS {name}" for (_, value), name in zip(keys, names, strict=True)]
            listed += [f"{one.sql} AS {made[key]}" for key, (_, one) in asked.items()]
            by = [value.safe for _, value in keys] + ([whole.unit] if whole.unit else [])
            text = f"SELECT {', '.join(listed)}{whole.hidden} FROM ({whole.sql})"
            if by:
                text += f" GROUP BY {', '.join(by)}"
            single = len(keys) == 1 and whole.private and keys[0][1].identity == self.catalog.person
            relation = Relation(
                text,
                (),
                unit=whole.unit,
                most=1.0 if single else whole.most,
                unique=frozenset([frozenset(names)]),
                filters=whole.filters,
                origins={**whole.origins, **{name: value for (_, value), name in zip(keys, names, strict=True)}},
                scans=whole.scans,
            )
        columns = [
            NamedColumn(
                one.table if isinstance(one, exp.Column) else None,
                one.name if isinstance(one, exp.Column) else "",
                fact,
            )
            for (one, _), fact in zip(keys, facts, strict=True)
        ]
        relation = replace(
            relation, columns=tuple(columns) + tuple(NamedColumn(None, "", one) for one in values.values())
        )
        by_text = {**{text_of(one): fact for (one, _), fact in zip(keys, facts, strict=True)}, **values}
        by_value = {value: fact for (_, value), fact in zip(keys, facts, strict=True)}

        def mapped(one: Node) -> Expression | None:
            known = by_text.get(text_of(one))
            if known is None and isinstance(one, exp.Column):
                try:
                    known = by_value.get(reader.find(one))
                except NotAnswered:
                    return None
                if known is None:
                    raise refused("this column is neither grouped by nor in an aggregate", one)
            return known

        return relation, mapped

    def _released(
        self,
        base: Relation,
        keys: Mapping[str, Expression],
        *,
        asked: Mapping[str, tuple[Node, Aggregate]],
        made: Mapping[str, str],
    ) -> str:
        """The SQL of the groups once they are released: all sums together, and quantiles of each number."""
        if not asked:
            raise refused("which groups there are would tell of people: ask for count(*) of each")
        plain = {text: one for text, (_, one) in asked.items() if one.name not in QUANTILES}
        trees: dict[tuple[Expression, Expression | None], dict[str, float]] = {}
        for text, (call, one) in asked.items():
            if text in plain:
                continue
            if one.args[0].range is None:
                raise refused(NEEDS_RANGE, call)
            trees.setdefault((one.args[0], one.where), {})[made[text]] = 0.5 if one.level is None else one.level
        tables = []
        if plain:
            tables.append(self._sums(base, keys, {text: asked[text] for text in plain}, made))
        tables += [self._tree(base, keys, of, where, levels=levels) for (of, where), levels in trees.items()]
        first, *rest = tables
        listed = [f"{first}.{name} AS {name}" for name in keys]
        text = f"SELECT {', '.join([*listed, *made.values()])} FROM {first}"
        for other in rest:
            match = " AND ".join(f"{first}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in keys)
            text += f" JOIN {other} ON {match}" if match else f" CROSS JOIN {other}"
        return text

    def _sums(
        self,
        base: Relation,
        keys: Mapping[str, Expression],
        asked: Mapping[str, tuple[Node, Aggregate]],
        made: Mapping[str, str],
    ) -> str:
        sums: list[SumOf] = []
        held: list[ByValue] = []
        asks: list[tuple[list[SumOf], ByValue | None]] = []
        for call, one in asked.values():
            known = by_value(one, call) if self.worlds else None
            mine = [self._of_people(each) for each in sums_of(one, call)] if known is None else []
            if any(each.size * 2.0**53 == float("inf") for each in mine):
                raise refused(f"these are too large to be added up: {NEEDS_RANGE}", call)
            sums += [each for each in dict.fromkeys(mine) if each not in sums]
            if known is not None and known not in held:
                held.append(known)
            asks.append((mine, known))
        places = [
            tuple(map(sums.index, mine)) if known is None else (len(sums) + held.index(known),) for mine, known in asks
        ]
        release = SqlRelease(
            table=self.names.fresh("r"),
            base=base,
            keys=tuple(keys.values()),
            key_names=tuple(keys),
            aggregates=tuple(one for _, one in asked.values()),
            value_names=tuple(made[text] for text in asked),
            sums=tuple(sums),
            places=tuple(places),
            held=tuple(held),
        )
        self.releases.append(release)
        return release.table

    def _of_people(self, one: SumOf) -> SumOf:
        """Marked, where it counts the people themselves: of each of them there is one."""
        return replace(one, people=one.distinct is not None and one.distinct.identity == self.catalog.person)

    def _tree(
        self,
        base: Relation,
        keys: Mapping[str, Expression],
        of: Expression,
        where: Expression | None,
        levels: Mapping[str, float],
    ) -> str:
        rows, node, tree = on_tree(base, of, where, levels=tuple(levels.values()), names=self.names)
        release = SqlRelease(
            table=self.names.fresh("r"),
            base=rows,
            keys=(*keys.values(), node),
            key_names=(*keys, self.names.fresh("y")),
            aggregates=(),
            value_names=tuple(levels),
            sums=(SumOf(()),),
            places=(),
            tree=tree,
        )
        self.releases.append(release)
        return release.table


def _is_known(node: exp.Column, reader: Reader) -> bool:
    try:
        reader.find(node)
    except NotAnswered:
        return False
    return True
