#!/usr/bin/env python3
"""Prints the Grafana dashboard, as JSON to import: dashboard.py >bfcpreload.json."""

import json

SOURCE = {"type": "prometheus", "uid": "${source}"}
JOB = "{{comm}} {{pid}}, gpu {{gpu}}"
CHOICE = '{instance=~"$instance",user=~"$user"}'
DEVICE = '{instance=~"$instance",UUID=~"$UUID"}'

# Of one device, stacked: free and the rest are what it has.
GPU_PANEL = ("Memory of $UUID", "bytes", [
    (f"sum(bfcpreload_gpu_memory_in_use_bytes{DEVICE})", "in use by jobs"),
    (f"sum(bfcpreload_gpu_memory_cached_bytes{DEVICE})", "cached by jobs"),
    (f"sum(bfcpreload_gpu_memory_others_bytes{DEVICE})", "others"),
    (f"sum(bfcpreload_gpu_memory_total_bytes{DEVICE}) - sum(bfcpreload_gpu_memory_used_bytes{DEVICE})", "free")])

# Title, unit, and its queries: expression and legend.
PANELS = [
    ("Memory on the device by job", "bytes", [
        (f"bfcpreload_reserved_bytes{CHOICE} - bfcpreload_asleep_bytes{CHOICE}", JOB)]),
    ("Memory that is asleep by job", "bytes", [(f"bfcpreload_asleep_bytes{CHOICE}", JOB)]),
    ("In use, ready and pending", "bytes", [
        (f"sum(bfcpreload_in_use_bytes{CHOICE})", "in use"), (f"sum(bfcpreload_ready_bytes{CHOICE})", "ready"),
        (f"sum(bfcpreload_pending_bytes{CHOICE})", "pending")]),
    ("Allocations a second", "ops", [(f"rate(bfcpreload_allocations_total{CHOICE}[$__rate_interval])", JOB)]),
    ("Share of allocations that ask the device", "percentunit", [
        (f"rate(bfcpreload_misses_total{CHOICE}[$__rate_interval]) / "
         f"rate(bfcpreload_allocations_total{CHOICE}[$__rate_interval])", JOB)]),
    ("Time in waits of frees", "percentunit", [
        (f"rate(bfcpreload_host_wait_seconds_total{CHOICE}[$__rate_interval])", JOB)]),
    ("99th percentile of a free", "s", [
        (f"histogram_quantile(0.99, sum by (le, comm, pid, gpu) "
         f"(rate(bfcpreload_free_seconds_bucket{CHOICE}[$__rate_interval])))", JOB)]),
    ("99th percentile of a wait of the host for a free", "s", [
        (f"histogram_quantile(0.99, sum by (le, comm, pid, gpu) "
         f"(rate(bfcpreload_host_wait_duration_seconds_bucket{CHOICE}[$__rate_interval])))", JOB)]),
    ("Fragmentation", "percentunit", [(f"bfcpreload_fragmentation_ratio{CHOICE}", JOB)]),
    ("Out of memory, and what saved others", "short", [
        (f"increase(bfcpreload_user_out_of_memory_total{CHOICE}[$__rate_interval])",
         "out of memory: {{user}}, {{pci_bus_id}}"),
        (f"increase(bfcpreload_last_resorts_saved_total{CHOICE}[$__rate_interval])", "{{rung}}: " + JOB)]),
    ("Waiting for memory", "bytes", [(f"bfcpreload_waiting_bytes{CHOICE}", JOB)]),
    ("Jobs", "short", [
        ("bfcpreload_jobs", "read on {{instance}}"), ("bfcpreload_unreadable_jobs", "not readable on {{instance}}"),
        ("bfcpreload_left_out_jobs", "left out on {{instance}}"),
        ("bfcpreload_left_out_pools", "pools left out on {{instance}}"),
        ("bfcpreload_impostor_segments", "named as another's on {{instance}}")]),
]


def panel(number, title, unit, queries):
    return {
        "id": number + 1, "title": title, "type": "timeseries", "datasource": SOURCE,
        "gridPos": {"h": 8, "w": 12, "x": number % 2 * 12, "y": number // 2 * 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
                    for i, (expression, legend) in enumerate(queries)],
    }


def gpu_panel(number):
    """One that Grafana repeats for each device that is chosen."""
    made = panel(number, *GPU_PANEL)
    made["fieldConfig"]["defaults"]["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 40}
    return {**made, "repeat": "UUID", "repeatDirection": "h", "maxPerRow": 4}


def variable(name, label):
    return {"name": name, "type": "query", "datasource": SOURCE, "query": f"label_values(bfcpreload_{label}, {name})",
            "includeAll": True, "multi": True, "allValue": ".*", "refresh": 2,
            "current": {"text": "All", "value": "$__all"}}


def main():
    print(json.dumps({
        "title": "bfcpreload", "uid": "bfcpreload", "schemaVersion": 38, "version": 1, "editable": True,
        "tags": ["cuda", "memory"], "refresh": "30s", "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"},
                                variable("instance", "jobs"), variable("user", "in_use_bytes"),
                                variable("UUID", "gpu_memory_total_bytes")]},
        "panels": [*(panel(number, *row) for number, row in enumerate(PANELS)), gpu_panel(len(PANELS) + 1)],
    }, indent=1))


if __name__ == "__main__":
    main()
