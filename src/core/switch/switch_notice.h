/*
 * The stage of notices (PCN, sections 3.2 and 3.3, and what section 5.3 leaves open): lowers the
 * marking threshold of a port while bursts are announced to it, and gives it back.
 *
 * An *announcement* is one sender's burst at one port, as it comes by one link. It opens with the
 * first notice that passes, if its job is honoured there; the same notice may be repeated. It
 * closes when the burst's head passes, when a notice of the same burst passes to another port, or
 * when it is as old as `hold`. So what is lost, has crashed or goes another way costs a port at
 * most `hold`; and what a stranger sends in the name of a burst by another link, is not the
 * burst's.
 *
 * A head that is added to others closes its announcement when it comes, and the sum is a head, too.
 * At the next switch that closes as many announcements of its job as workers stand behind it, the
 * oldest first, of those that came by its own link. A head that is resent, or flagged twice since a
 * sum took it along, finds nothing left to close; one that gets lost with a partial sum costs
 * `hold` there.
 *
 * A port's threshold is the lowest that an open announcement asks for, and never below `floor`.
 * Who is honoured, notice_budget.h says; without a share nobody. When the table is full, a link
 * with few announcements takes a place from one with more. One that finds no place is honoured
 * until `hold` is over, whatever its head does: so filling the table takes nothing from other
 * links. No packet is held back or changed.
 *
 * Invariant: a port's threshold is its own exactly when no announcement is open there.
 *
 * The stage knows no other: it says what a port's threshold should be, and whoever calls it sees to
 * that.
 */
#ifndef GW_CORE_SWITCH_NOTICE_H
#define GW_CORE_SWITCH_NOTICE_H

#include "base/arena.h"
#include "base/fixed.h"
#include "core/notice.h"
#include "core/switch/switch_stage.h"

struct gw_switch_notice_cfg {
    uint32_t packet;   /* bytes that a threshold counts as one packet */
    uint32_t floor;    /* packets */
    gw_time hold;      /* several round trips (4 RTT) */
    gw_q16 share;      /* of all time, up to 1 */
    gw_time save;      /* most time that a port may have saved up: a few times `hold` */
    uint32_t jobs_max; /* known at a port at the same time, for each link that they come by: 1 to
                          GW_NOTICE_ACCOUNTS_MAX */
    uint32_t announcements_max; /* open at the switch at the same time, at least 1 */
};

/*
 * Counters, of one port or of all:
 *
 *   notices = repeated + refused + no_room + heads + recoveries + moved + dropped + open
 */
struct gw_switch_notice_stats {
    uint64_t notices;    /* that asked for a threshold; repeated ones included */
    uint64_t repeated;   /* of these, of an announcement that was open */
    uint64_t refused;    /* not honoured: their job has no time left, or there is no room for it */
    uint64_t no_room;    /* honoured until `hold` is over, whatever comes */
    uint64_t heads;      /* announcements closed by a head: bursts that came, in workers */
    uint64_t recoveries; /* for their age */
    uint64_t moved;      /* by a notice at another port */
    uint64_t dropped;    /* since their port was closed, or their room was needed */
    gw_time lowered;     /* time at another threshold than the port's own, until now */
};

/* What the stage wants of a port: `bytes` is its marking threshold, UINT32_MAX: its own. */
struct gw_switch_notice_change {
    uint16_t port;
    uint32_t bytes;
};

enum {
    /* Of all workers that sent by the link; as GW_AGGREGATE_WORKERS_ALL. */
    GW_SWITCH_NOTICE_ALL = UINT16_MAX,
};

struct gw_switch_notice;

/* Bytes of memory that the stage needs for a switch. */
size_t gw_switch_notice_size(const struct gw_switch_notice_cfg *cfg, uint16_t port_count);

/* Makes a stage in `memory`, aligned to 64. The seed keeps strangers from choosing their place in
 * its tables. */
struct gw_switch_notice *gw_switch_notice_init(void *memory, const struct gw_switch_notice_cfg *cfg,
                                               uint16_t port_count, uint64_t seed);

/* A notice passes; answers, and those without a threshold, change nothing. */
void gw_switch_notice_announce(struct gw_switch_notice *notice, const struct gw_switch_hop *hop,
                               const struct gw_pkt *pkt, gw_time now);

/* Data or a gradient with GW_PKT_HEAD passes, or ends here; `workers` that it stands for, or
 * GW_SWITCH_NOTICE_ALL. `hop->out` is used if these are more than one. */
void gw_switch_notice_head(struct gw_switch_notice *notice, const struct gw_switch_hop *hop,
                           const struct gw_pkt *pkt, uint32_t workers, gw_time now);

/* Nothing leaves by `port` any more: its announcements close. */
void gw_switch_notice_close(struct gw_switch_notice *notice, uint16_t port, gw_time now);

/* Closes announcements that are as old as `hold`. */
void gw_switch_notice_expire(struct gw_switch_notice *notice, gw_time now);

/* From now on `hold` is another, of all announcements, those that are open too; and so is `save`.
 */
void gw_switch_notice_set_hold(struct gw_switch_notice *notice, gw_time hold, gw_time save,
                               gw_time now);

/* When that is to be done next, or GW_TIME_NEVER. */
gw_time gw_switch_notice_deadline(const struct gw_switch_notice *notice);

/* The next port whose threshold is to be another since one of the calls above. False: none. To be
 * called until then after each of them. */
bool gw_switch_notice_next(struct gw_switch_notice *notice, struct gw_switch_notice_change *change);

struct gw_switch_notice_stats gw_switch_notice_stats(const struct gw_switch_notice *notice,
                                                     uint16_t port, gw_time now);
/* The sum of all ports. */
struct gw_switch_notice_stats gw_switch_notice_total(const struct gw_switch_notice *notice,
                                                     gw_time now);

/* Announcements that are open at a port. */
uint32_t gw_switch_notice_open(const struct gw_switch_notice *notice, uint16_t port);

/* The threshold that a port should have, in bytes; UINT32_MAX: its own. */
uint32_t gw_switch_notice_threshold(const struct gw_switch_notice *notice, uint16_t port);

/* Fails an assertion unless all books agree and the invariant holds. */
void gw_switch_notice_check(const struct gw_switch_notice *notice);

#endif
