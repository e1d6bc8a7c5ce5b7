/*
 * The inside of the coordinator, shared by coordinator.c, coordinator_seats.c, coordinator_epoch.c
 * and coordinator_say.c and by nobody else.
 *
 * Invariants: while an epoch runs, every rank is IN or LEFT, and the switches of its tree have
 * confirmed it; the epoch's number has never been used by a worker or switch that is still there.
 */
#ifndef GW_CORE_COORDINATOR_IMPL_H
#define GW_CORE_COORDINATOR_IMPL_H

#include "core/control/coordinator.h"
#include "core/control/job_tree.h"
#include "core/host/app.h"

enum gw_seat_state {
    GW_SEAT_FREE,   /* JOIN moves it on */
    GW_SEAT_ASKED,  /* the old epoch is to end: JOIN moves it on */
    GW_SEAT_JOINED, /* the next epoch moves it on */
    GW_SEAT_IN,     /* WELCOME is sent; LEAVE, silence or the end of the epoch moves it on */
    GW_SEAT_LEFT,   /* a fresh worker's JOIN, or the last LEAVE, moves it on */
};

/* What is known of a rank's worker. */
struct gw_seat {
    uint32_t address;
    uint32_t incarnation;
    uint32_t expected;
    uint32_t path[GW_LEVELS_MAX];
    uint8_t path_count;
    uint8_t state;     /* enum gw_seat_state */
    uint16_t epoch;    /* that the worker has last been in */
    bool is_fresh;     /* has nothing to go on with */
    bool resumes;      /* in the seat of one that left: begins at resume_seq */
    bool is_untouched; /* has calls in work, and no result since it was fresh */
    bool is_ready;     /* knows that it is in */
    bool is_claimed;   /* somebody else wants the rank, since claimed_at */
    gw_time claimed_at;
    gw_time heard;
};

struct gw_coordinator {
    struct gw_app app;
    struct gw_coordinator_cfg cfg;
    struct gw_seat *seats; /* by rank */
    struct gw_job_way *ways;
    struct gw_job_tree tree;
    void *tree_memory;
    uint16_t *confirmed; /* members that each switch of the tree knows */
    enum gw_coordinator_phase phase;
    uint16_t epoch;        /* of the running or the last one */
    uint16_t failed_epoch; /* the last that failed, and why */
    enum gw_job_reason failed_reason;
    uint32_t failed_about;
    uint32_t resume_seq; /* where workers that left stopped */
    uint32_t tries;
    uint8_t notice;        /* gw_notice_option of all workers that have a seat, */
    uint8_t notice_units;  /* and what follows from it, */
    bool has_notice_units; /* once an epoch has begun with it */
    struct gw_coordinator_stats stats;
};

static inline bool gw_seat_is_vacant(const struct gw_seat *seat)
{
    return seat->state == GW_SEAT_FREE || seat->state == GW_SEAT_LEFT;
}

/* coordinator_say.c: packets. One that finds the pool empty is not sent; the timer tries again. */
/* A word to a worker that says no more than itself and a reason. */
void gw_coordinator_tell(struct gw_coordinator *co, uint32_t dst, enum gw_job_op op, uint32_t key,
                         uint16_t epoch, enum gw_job_reason reason, uint32_t about);
/* The same, of the last epoch that failed. */
void gw_coordinator_tell_failed(struct gw_coordinator *co, uint32_t dst, uint32_t key,
                                uint16_t epoch);
/* Its place in the epoch, to the worker of a rank. */
void gw_coordinator_welcome(struct gw_coordinator *co, uint32_t rank);
/* All that a switch does not know yet, or if it knows all, a word that the job lives. */
void gw_coordinator_install(struct gw_coordinator *co, uint32_t index);
/* To a switch of the tree: forget the job. */
void gw_coordinator_remove(struct gw_coordinator *co, uint32_t index);

/* coordinator_seats.c: what workers say. */
void gw_coordinator_join(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now);
void gw_coordinator_ready(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now);
void gw_coordinator_leave(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now);

/* coordinator_epoch.c: from phase to phase. */
void gw_coordinator_enter(struct gw_coordinator *co, enum gw_coordinator_phase phase, gw_time now);
/* The epoch is to end: asks all for what they expect. */
void gw_coordinator_gather(struct gw_coordinator *co, gw_time now);
/*
 * Begins when all have joined. A fresh worker among others that are in the middle of something can
 * take part only in the seat of one that left, or if nobody has a result yet; else whoever had its
 * seat has died.
 */
void gw_coordinator_form(struct gw_coordinator *co, gw_time now);
/* A switch knows its members, or refuses. */
void gw_coordinator_installed(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now);
/*
 * The epoch is over, or cannot begin. Whoever has calls in work is told; a fresh worker is told
 * only if it is `refused`, else it joins on.
 */
void gw_coordinator_dissolve(struct gw_coordinator *co, bool refused, enum gw_job_reason reason,
                             uint32_t about, gw_time now);
/* The last worker has left. */
void gw_coordinator_close(struct gw_coordinator *co, gw_time now);

#endif
