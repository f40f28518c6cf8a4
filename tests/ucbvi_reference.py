"""The learners once more, slowly: plain loops written from the formulas, as an oracle and a peer.

One object an episode after the other, numpy only for dot products, as a straightforward program
would be. Draws the same numbers from the same generator as the compiled engine.
"""

import math

import numpy as np


class Reference:
    def __init__(self, mdp, algorithm, H, K, seed=0, scale=1.0, delta=None):
        self.P, self.R, self.algorithm, self.H, self.scale = mdp.P, mdp.R, algorithm, H, scale
        S, A = mdp.R.shape
        self.S, self.A = S, A
        self.L = math.log(5 * S * A * K * H / (delta or 1))
        self.ell = math.log(200 * S * A * H**2 * K**2 / (delta or 1 / K))
        self.Q = np.full((H, S, A), float(H))
        self.V = np.zeros((H + 1, S))
        self.counts, self.P_hat = np.zeros((S, A, S)), np.zeros((S, A, S))
        self.N, self.n = np.zeros((S, A)), np.zeros((S, A))
        self.reached = np.zeros((H + 1, S))
        self.due, self.refreshed = False, []
        self.rng = np.random.Generator(np.random.SFC64(seed))

    def bonus(self, h, s, a):
        H, S, A, L, N, p = self.H, self.S, self.A, self.L, self.n[s, a], self.P_hat[s, a]
        v = self.V[h + 1]
        spread = max(p @ v**2 - (p @ v) ** 2, 0.0)
        if self.algorithm in ("CH", "CH-I"):
            return {"CH": 7, "CH-I": 2}[self.algorithm] * H * L / math.sqrt(N)
        if self.algorithm == "MVP":
            N = max(N, 1)
            return 460 / 9 * math.sqrt(spread * self.ell / N) + 544 / 9 * H * self.ell / N
        improved = self.algorithm == "BF-I"
        rare = (84 if improved else 100) ** 2 * H**3 * S**2 * A * L**2
        seldom = sum(p[y] * min(rare / max(1, self.reached[h + 1, y]), H**2) for y in range(S))
        if improved:
            return (
                math.sqrt(4 * L * spread / N)
                + 7 * H * L / (3 * max(N - 1, 1))
                + math.sqrt(4 / N * seldom)
            )
        return math.sqrt(8 * L * spread / N) + 14 * H * L / (3 * N) + math.sqrt(8 / N * seldom)

    def plan(self):
        doubling = self.algorithm == "MVP"
        for h in reversed(range(self.H)):
            for s in range(self.S):
                for a in range(self.A):
                    if not doubling and self.n[s, a] == 0:
                        continue
                    b = self.scale * self.bonus(h, s, a)
                    q = min(self.H, self.R[s, a] + self.P_hat[s, a] @ self.V[h + 1] + b)
                    self.Q[h, s, a] = q if doubling else min(q, self.Q[h, s, a])
                self.V[h, s] = self.Q[h, s].max()

    def episode(self):
        """The rewards of one episode, summed."""
        if self.algorithm != "MVP" or self.due:
            self.plan()
            self.due = False
        s, gained = 0, 0.0
        for h in range(self.H):
            a = int(np.argmax(self.Q[h, s]))
            y = int((self.P[s, a].cumsum()[:-1] <= self.rng.random()).sum())
            gained += self.R[s, a]
            self.reached[h, s] += 1
            self.counts[s, a, y] += 1
            self.N[s, a] += 1
            if self.algorithm != "MVP":
                self.n[s, a] = self.N[s, a]
                self.P_hat[s, a] = self.counts[s, a] / self.n[s, a]
            elif math.log2(self.N[s, a]).is_integer():
                self.n[s, a] = self.counts[s, a].sum()
                self.P_hat[s, a] = self.counts[s, a] / self.n[s, a]
                self.counts[s, a] = 0
                self.due = True
                self.refreshed.append((s, a, int(self.N[s, a]), int(self.n[s, a])))
            s = y
        return gained
