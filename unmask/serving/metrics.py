"""Metrics of the service, for Prometheus. The names follow those of Text Embeddings Inference and vLLM."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class Metrics:
    """All counters of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("unmask_request_count", "Requests that came", ["route"], registry=self.registry)
        self.successes = Counter("unmask_request_success", "Requests that were answered", registry=self.registry)
        self.failures = Counter(
            "unmask_request_failure", "Requests that were refused or failed", ["cause"], registry=self.registry
        )
        self.seconds = self._times("unmask_request_duration", "Seconds from a request to its answer")
        self.queued = self._times("unmask_request_queue_duration", "Seconds that a text waited for the model")
        self.computed = self._times("unmask_request_inference_duration", "Seconds that a batch was computed")
        self.first = self._times("unmask_time_to_first_token_seconds", "Seconds from a request to its first new token")
        self.waiting = Gauge("unmask_queue_size", "Texts that wait", registry=self.registry)
        self.running = Gauge(
            "unmask_num_requests_running", "Requests that wait or are computed", registry=self.registry
        )
        self.tokens = self._sizes("unmask_batch_next_tokens", "Tokens of a batch, with padding")
        self.texts = self._sizes("unmask_batch_next_size", "Texts of a batch")
        self.read = Counter("unmask_prompt_tokens", "Tokens that were read", registry=self.registry)
        self.written = Counter("unmask_generation_tokens", "Tokens that were generated", registry=self.registry)
        self.dropped = Counter(
            "unmask_dropped_texts", "Texts that were not computed, because their client left", registry=self.registry
        )

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)

    def _times(self, name: str, words: str) -> Histogram:
        return Histogram(name, words, buckets=SECONDS, registry=self.registry)

    def _sizes(self, name: str, words: str) -> Histogram:
        return Histogram(name, words, buckets=SIZES, registry=self.registry)
