/*
 * The loop of one I/O thread: nodes, the links between them, and the way to neighbours.
 *
 * It drives the four verbs. A port of a node is linked to a port of another node of the same
 * thread, to a neighbour by the datapath, or to nothing, and then what leaves is lost and counted.
 * A host's port may have direct ways besides: packets to certain addresses take another neighbour,
 * or go to another port of the thread.
 * Trains are handed over as they are; between two nodes of one thread nothing is encoded or copied.
 *
 * Use: open, add nodes, link their ports; then take turns, and after each poll the endpoints'
 * events. A turn sleeps only when nothing can move.
 */
#ifndef GW_NET_LOOP_H
#define GW_NET_LOOP_H

#include "core/node.h"
#include "core/permit.h"
#include "net/datapath.h"

enum {
    GW_LOOP_NODES_MAX = 8,
    GW_LOOP_FDS_MAX = 4,
    GW_LOOP_FOREIGN_MAX = 148, /* bytes of a datagram that is kept for its owner */
};

/* A port of a node. */
struct gw_loop_port {
    uint16_t node;
    uint16_t port;
};

struct gw_loop_cfg {
    struct gw_datapath *datapath; /* the loop's until it is closed; NULL: no neighbours */
    struct gw_pkt_pool *pool;     /* of all nodes */
    uint16_t peers_max;           /* as the datapath's */
    uint32_t directs_max;         /* direct ways, over all ports */
    int fds[GW_LOOP_FDS_MAX]; /* besides the datapath, these end a sleep when there is something to
                                 read; whoever opened them reads it */
    uint32_t fd_count;
};

struct gw_loop_stats {
    uint64_t sleeps;
    uint64_t yields;   /* that others had the core first (net/yield.h) */
    uint64_t unlinked; /* packets that left by a port without a link */
    uint64_t no_room;  /* packets to a port of this thread whose payload was lent, without a buffer
                          for it: dropped */
};

struct gw_loop;

/* Returns NULL when there is no memory. */
struct gw_loop *gw_loop_open(const struct gw_loop_cfg *cfg);
void gw_loop_close(struct gw_loop *loop);

/* The calling thread is the loop's own: its scheduling policy may change (batch_policy.h). */
void gw_loop_own(struct gw_loop *loop);

/* By that thread, before it takes no turns for a while: it is to wake at once. */
void gw_loop_pause(struct gw_loop *loop);

/* Picoseconds since the loop was opened: the time of its nodes, in which it does not count when the
 * process did not run (own_time.h). */
gw_time gw_loop_now(struct gw_loop *loop);

/* The same as of the last look at the clock, which costs less: in a turn, at its start, when a
 * train came or left, and after it slept. */
gw_time gw_loop_time(const struct gw_loop *loop);

/* For how long the process did not run, the last time, if that was less than `ago` before now; 0:
 * it has run. */
gw_time gw_loop_away(struct gw_loop *loop, gw_time ago);

/* Adds a node; it must outlive the loop. Returns its number. */
uint16_t gw_loop_add(struct gw_loop *loop, struct gw_node *node);

/* Links two ports of this thread, in both directions. */
void gw_loop_join(struct gw_loop *loop, struct gw_loop_port a, struct gw_loop_port b);

/* What arrives from the neighbour goes to this port; what leaves by it goes to the neighbour, if
 * `is_way_out`. */
void gw_loop_link(struct gw_loop *loop, struct gw_loop_port port, uint16_t peer, bool is_way_out);

/* Packets to `address` that leave by this port go to the neighbour. Returns 0 or GW_ERR_NO_ROOM. */
int gw_loop_direct(struct gw_loop *loop, struct gw_loop_port port, uint32_t address, uint16_t peer);

/* The same, to another port of this thread. */
int gw_loop_direct_join(struct gw_loop *loop, struct gw_loop_port port, uint32_t address,
                        struct gw_loop_port to);

/* Takes the direct way to `address` back, if there is one. */
void gw_loop_undirect(struct gw_loop *loop, struct gw_loop_port port, uint32_t address);

/*
 * Packets of the job (of aggregation and control) to `address` that leave by this port, or by
 * another one with direct ways, go to the neighbour; or to another port, as also those that come
 * from neighbours do. Each returns 0 or GW_ERR_NO_ROOM.
 */
int gw_loop_direct_job(struct gw_loop *loop, struct gw_loop_port port, uint32_t job,
                       uint32_t address, uint16_t peer);
int gw_loop_receive_job(struct gw_loop *loop, uint32_t job, uint32_t address,
                        struct gw_loop_port to);
void gw_loop_forget_job(struct gw_loop *loop, uint32_t job, uint32_t address);

/* Packets to `address` that come from any neighbour go to this port, whatever the neighbour is
 * linked to. Counts as a direct way. */
int gw_loop_receive_at(struct gw_loop *loop, uint32_t address, struct gw_loop_port port);

/* The neighbour is a host of this tenant, and may say no more than that: what else it sends is
 * dropped. */
void gw_loop_permit(struct gw_loop *loop, uint16_t peer, const struct gw_permit *permit,
                    uint32_t tenant);

/* Packets of the tenant's hosts that were dropped for that. */
uint64_t gw_loop_forbidden(const struct gw_loop *loop, uint32_t tenant);

/* Takes back all links and direct ways to the neighbour, and its permit. */
void gw_loop_unlink(struct gw_loop *loop, uint16_t peer);

/* Lets at most `rate_bps` leave by the port, over times of more than a few milliseconds; 0: as much
 * as the datapath takes. */
void gw_loop_set_rate(struct gw_loop *loop, struct gw_loop_port port, uint64_t rate_bps);

/*
 * Moves what can move. When nothing more can, and there are neither events nor foreign datagrams,
 * sleeps until something arrives, one of cfg.fds has something to read, a node's deadline, or
 * `until`; GW_TIME_NEVER is allowed where somebody writes to an fd. 0: returns instead.
 * Returns 0 or GW_ERR_SYSTEM with `error` filled.
 */
int gw_loop_turn(struct gw_loop *loop, gw_time until, char *error);

/* Whether nothing could move in the last turn, and nothing came while it slept. */
bool gw_loop_is_idle(const struct gw_loop *loop);

/* When there is something to do without an arrival, as of the last turn; GW_TIME_NEVER is possible.
 * A time that has passed: more could move at once. */
gw_time gw_loop_due(const struct gw_loop *loop);

/* Whether one of cfg.fds had something to read when the last turn slept. */
bool gw_loop_has_input(const struct gw_loop *loop);

/*
 * The next datagram of the attach protocol that came in the last turn, and its sender; returns its
 * length, 0 when there is none. Valid until the next turn.
 */
uint32_t gw_loop_take_foreign(struct gw_loop *loop, const uint8_t **bytes,
                              struct gw_sock_addr *from);

const struct gw_loop_stats *gw_loop_stats(const struct gw_loop *loop);

#endif
