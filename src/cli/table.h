/*
 * The table of a sweep: one row per point, with its settings and the columns that the scenario
 * names.
 *
 * A column is the path of a value in the JSON of a run, as in "fct_us.max"; "jobs.0.algbw_gbps" is
 * that of the first job. Numbers are averaged over the runs of a point, one per seed. A column that
 * is a list of numbers spreads the point over as many rows. "box bursts.queue_max" are six columns
 * over all such numbers of all runs of the point: least, quartiles, most and mean; "mean
 * bursts.queue_max" is one of them. A list on the way stands there for every item of it, unless a
 * number follows.
 */
#ifndef GW_CLI_TABLE_H
#define GW_CLI_TABLE_H

#include <jansson.h>
#include <stdio.h>

#include "config/scenario.h"

struct gw_table;

/* The sweep must outlive the table. */
struct gw_table *gw_table_open(const struct gw_sweep *sweep);
/*
 * Adds a point with the JSON of its runs, an array. Returns 0, or GW_ERR_UNKNOWN after a complaint
 * when a run has no such column.
 */
int gw_table_add(struct gw_table *table, uint32_t point, const json_t *runs);
/* Prints what was added, aligned. */
void gw_table_print(const struct gw_table *table);
/* Writes it as CSV, with the same digits. */
void gw_table_write(const struct gw_table *table, FILE *file);
void gw_table_close(struct gw_table *table);

#endif
