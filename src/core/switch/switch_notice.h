/*
 * The stage of notices (PCN, sections 3.2 and 3.3, and what section 5.3 leaves open): lowers the
 * marking threshold of a port while bursts are announced to it, and gives it back.
 *
 * An *announcement* is one sender's burst at one port: it opens with the first notice that passes,
 * which may be repeated, and closes when the burst's head passes, when a notice of the same burst
 * passes to another port, or when it is older than `hold`. So what is lost, has crashed or goes
 * another way costs a port at most `hold`. The head of an aggregated burst closes as many
 * announcements of its job as workers stand behind it, the oldest first.
 *
 * Whoever announces is a stranger. A port's threshold is the lowest that an open, *honoured*
 * announcement asks for, and never below `floor`. A job is honoured as long as it has time left:
 * a port gives `share` of all time to announcements, in equal parts to the jobs that it knows, each
 * of which may save up `save`; time that a job keeps the port low is taken from its own. So
 * announcing without sending, often, or with the smallest threshold costs others at most `share`
 * of the time at `floor`, and no job the time of another. Announcements beyond what the tables hold
 * are not honoured; they pass and are counted. No packet is held back or changed.
 *
 * Invariant: a port's threshold is its own exactly when no honoured announcement is open there.
 *
 * The stage knows no other: it returns what a port's threshold should be, and whoever calls it sees
 * to that.
 */
#ifndef GW_CORE_SWITCH_NOTICE_H
#define GW_CORE_SWITCH_NOTICE_H

#include "base/arena.h"
#include "base/fixed.h"
#include "core/notice.h"
#include "core/pkt.h"

struct gw_switch_notice_cfg {
    uint32_t packet;            /* bytes that a threshold counts as one packet */
    uint32_t floor;             /* packets */
    gw_time hold;               /* several round trips (4 RTT) */
    gw_q16 share;               /* of all time, up to 1 */
    gw_time save;               /* most time that a job may have saved up: a few times `hold` */
    uint32_t jobs_max;          /* known at a port at the same time */
    uint32_t announcements_max; /* open at the switch at the same time */
};

/* Counters, of one port or of all. */
struct gw_switch_notice_stats {
    uint64_t notices;    /* that asked for a threshold; repeated ones included */
    uint64_t repeated;   /* of these, of an announcement that was open */
    uint64_t heads;      /* bursts that came, in workers */
    uint64_t recoveries; /* announcements closed for their age */
    uint64_t moved;      /* by a notice at another port */
    uint64_t refused;    /* not honoured: no time left, ... */
    uint64_t no_room;    /* ... or no room */
    gw_time lowered;     /* time at another threshold than the port's own, until now */
};

struct gw_switch_notice;

/* What the stage wants of a port: `bytes` is its marking threshold, UINT32_MAX: its own. */
struct gw_switch_notice_change {
    uint16_t port;
    uint32_t bytes;
};

#endif
