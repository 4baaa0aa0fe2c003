#pragma once

#include <string>
#include <vector>

namespace diapason::dataset {

// Identifies diapason's files among SQLite files: "Diap".
inline constexpr int kApplicationId = 0x44696170;
// The version of the layout below. A file with a higher number is not modified.
inline constexpr int kSchemaVersion = 1;

struct SchemaObject {
  const char* name;
  const char* sql;
};

// SQLite stores the text verbatim: a file whose tables read differently is not diapason's, or was
// changed.
inline constexpr SchemaObject kSchema[] = {
    {"meta", "CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)"},
    {"machine",
     "CREATE TABLE machine(id INTEGER PRIMARY KEY, library TEXT NOT NULL, library_version TEXT NOT "
     "NULL, gpu TEXT NOT NULL, driver TEXT NOT NULL, topology TEXT NOT NULL, hosts TEXT NOT NULL, "
     "tool TEXT NOT NULL, simulated INTEGER NOT NULL, environment TEXT NOT NULL, UNIQUE(library, "
     "library_version, gpu, driver, topology, hosts, tool, simulated, environment))"},
    {"run",
     "CREATE TABLE run(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, source TEXT NOT NULL, "
     "origin TEXT NOT NULL, started REAL NOT NULL, state INTEGER NOT NULL, plan TEXT NOT NULL, "
     "machine INTEGER NOT NULL REFERENCES machine)"},
    {"point",
     "CREATE TABLE point(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, collective TEXT NOT NULL, "
     "bytes INTEGER NOT NULL, nodes INTEGER NOT NULL, ranks INTEGER NOT NULL, type TEXT NOT NULL, "
     "reduce TEXT NOT NULL, root INTEGER NOT NULL, in_place INTEGER NOT NULL, algorithm TEXT NOT "
     "NULL, protocol TEXT NOT NULL, channels INTEGER NOT NULL, segment_bytes INTEGER NOT NULL, "
     "environment TEXT NOT NULL, workload TEXT NOT NULL, UNIQUE(collective, bytes, nodes, ranks, "
     "algorithm, protocol, channels, kind, type, reduce, root, in_place, segment_bytes, "
     "environment, workload))"},
    {"sample",
     "CREATE TABLE sample(id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run, point "
     "INTEGER NOT NULL REFERENCES point, round INTEGER NOT NULL, seconds REAL, coarse REAL NOT "
     "NULL, iterations INTEGER NOT NULL, wrong INTEGER NOT NULL, outcome INTEGER NOT NULL, note "
     "TEXT NOT NULL, at REAL NOT NULL)"},
    {"sample_by_run", "CREATE INDEX sample_by_run ON sample(run)"},
};

// Created with the first mark, so that stores with only imports have none: what a run is measuring.
// Older versions ignore it, so the layout version is unchanged. `since` 0: nothing is being
// measured, and `deaths` counts how often the process ended in it.
inline constexpr SchemaObject kTrying = {
    "trying",
    "CREATE TABLE trying(run INTEGER NOT NULL REFERENCES run, point INTEGER NOT NULL REFERENCES "
    "point, since REAL NOT NULL, deaths INTEGER NOT NULL, PRIMARY KEY(run, point))"};

}  // namespace diapason::dataset
