"""The server's network: three dense layers, trained on an encoded set as `network.txt` advises. Needs torch."""

from __future__ import annotations

from typing import Any

__all__ = ["three_layers"]


def three_layers(
    Z: Any, Y: Any, *, classes: int, wide: int = 512, epochs: int = 60, batch: int = 200, device: str = "cpu"
) -> Any:
    """A trained `nn.Module`; widths, rate and decay were chosen once and are the same for every set.

    Labels have a column for each of `classes` classes; columns beyond are of public rows, a task of their own.
    """
    import torch  # noqa: PLC0415

    rows, shares = (torch.as_tensor(one, dtype=torch.float32, device=device) for one in (Z, Y))
    middle, spread = rows.mean(dim=0), rows.std()
    layers = torch.nn.Sequential(
        torch.nn.Linear(rows.shape[1], wide),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(wide, wide),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(wide, shares.shape[1]),
    ).to(device)
    steps = epochs * max(1, len(rows) // batch)
    learner = torch.optim.AdamW(layers.parameters(), lr=2e-3, weight_decay=3.0)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(learner, steps)
    scaled, done = (rows - middle) / spread, 0
    while done < steps:
        for some in torch.randperm(len(rows), device=device).split(batch):
            scores, wanted = layers(scaled[some]), shares[some]
            parts = (slice(0, classes), slice(classes, None))
            loss = -sum(
                (wanted[:, part] * torch.log_softmax(scores[:, part], dim=1)).sum(dim=1).mean()
                for part in parts[: 1 if shares.shape[1] == classes else 2]
            )
            learner.zero_grad()
            loss.backward()
            learner.step()
            rates.step()
            done += 1
    first = layers[0]
    with torch.no_grad():  # centring and scaling belong to the first layer
        first.weight /= spread
        first.bias -= first.weight @ middle
    return layers.eval()
