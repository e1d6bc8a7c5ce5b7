/*
 * What makes a switch lossless: books of the data that each port brought and that still waits in a
 * queue, and with them priority flow control (pause.h) on all ports.
 *
 * The switch says what enters and leaves its queues and pulls the PAUSEs; this module keeps the
 * books and the timers. A queued packet carries the port of its arrival in q.rank, so that the
 * books are right whatever a queue discipline does with the order.
 *
 * Invariant: the meters of all ports together hold the bytes of data in the switch's queues.
 */
#ifndef GW_CORE_LOSSLESS_H
#define GW_CORE_LOSSLESS_H

#include "core/pause.h"

struct gw_lossless;

/* No port: see gw_lossless_expire(). */
#define GW_LOSSLESS_NONE UINT16_MAX

size_t gw_lossless_size(uint16_t port_count);
/* `memory` is aligned to 8. */
struct gw_lossless *gw_lossless_init(void *memory, const struct gw_pause_cfg *cfg,
                                     uint16_t port_count);

/* A packet that arrived by port q.rank goes to the queue of port `out`. */
void gw_lossless_queued(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                        gw_time now);
/* It left that queue, or did not get in. */
void gw_lossless_left(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                      gw_time now);
/* A packet in that queue that had `size` bytes was trimmed to what it is now. */
void gw_lossless_trimmed(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                         uint32_t size, gw_time now);

/* A PAUSE for `time` arrived by `port`. True: the port may send data again. */
bool gw_lossless_obey(struct gw_lossless *lossless, uint16_t port, gw_time time, gw_time now);

/* Whether `port`, whose queue holds `backlog` bytes, has anything that it may send now. */
bool gw_lossless_is_ready(const struct gw_lossless *lossless, uint16_t port, uint32_t backlog);

/*
 * The PAUSE that `port` must send before all else, or NULL; it then has nothing to tell, or the
 * pool is empty and it tries again later.
 */
struct gw_pkt *gw_lossless_pause(struct gw_lossless *lossless, uint16_t port,
                                 struct gw_pkt_pool *pool, uint32_t size, gw_time now);

/* When gw_lossless_expire() must be called; may be earlier after each of the calls above. */
gw_time gw_lossless_deadline(const struct gw_lossless *lossless);
/* Handles one timer that is due: returns the port that may have become ready, or none is due. */
uint16_t gw_lossless_expire(struct gw_lossless *lossless, gw_time now);

/* Both sides of a port. */
const struct gw_pause_meter *gw_lossless_meter(const struct gw_lossless *lossless, uint16_t port);
const struct gw_pause_gate *gw_lossless_gate(const struct gw_lossless *lossless, uint16_t port);

#endif
