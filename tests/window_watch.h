/*
 * Watches the windows of a job's workers: that those who expect the same fragment have the same,
 * and how far and for how long they differ at the same time.
 */
#ifndef GW_TESTS_WINDOW_WATCH_H
#define GW_TESTS_WINDOW_WATCH_H

#include "core/aggregation/worker.h"

enum {
    GW_WATCH_FRAGMENTS_MAX = 8192, /* of a run */
};

struct gw_window_watch {
    uint32_t first_seq;
    uint64_t windows[GW_WATCH_FRAGMENTS_MAX]; /* by expected fragment; 0: not seen yet */
    uint64_t least_cuts, most_cuts;           /* of the workers noted since the last end */
    bool has_cuts;
    gw_time apart_since; /* GW_TIME_NEVER: all have been cut as often */
    /* What it found out. */
    uint32_t compared;   /* times that two workers were seen with the same fragment */
    uint32_t differ;     /* of these, with different windows */
    uint64_t apart_most; /* cuts between two workers at the same time */
    gw_time apart_time;  /* the longest in which there were any */
};

void gw_window_watch_init(struct gw_window_watch *watch, uint32_t first_seq);

/* One worker, as it is now. */
void gw_window_watch_note(struct gw_window_watch *watch, const struct gw_worker *worker);

/* All workers have been noted. */
void gw_window_watch_end(struct gw_window_watch *watch, gw_time now);

#endif
