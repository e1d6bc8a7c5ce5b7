/*
 * What makes a switch lossless: books of the data that each port brought and that still waits in a
 * queue, and with them priority flow control (pause.h) on all ports.
 *
 * The stage of the queues says what enters and leaves them and pulls the PAUSEs; this module keeps
 * the books, and moves two timers of every port. A queued packet carries the port of its arrival in
 * q.in, so that the books are right whatever a queue discipline does with the order.
 *
 * Invariant: the meters of all ports together hold the bytes of data in the switch's queues.
 */
#ifndef GW_CORE_LOSSLESS_H
#define GW_CORE_LOSSLESS_H

#include "core/pause.h"
#include "core/switch/switch_timers.h"

struct gw_lossless;

size_t gw_lossless_size(uint16_t port_count);
/* Makes the books of a switch, to whose node the timers belong, in `memory`, aligned to 8. */
void gw_lossless_init(struct gw_lossless *memory, const struct gw_pause_cfg *cfg,
                      struct gw_switch_timers *timers);

/* A packet that arrived by port q.in goes to the queue of port `out`. */
void gw_lossless_queued(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                        gw_time now);
/* It left that queue, or did not get in. */
void gw_lossless_left(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                      gw_time now);
/* A packet in that queue that had `size` bytes was trimmed to what it is now. */
void gw_lossless_trimmed(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                         uint32_t size, gw_time now);

/* A PAUSE for `time` arrived by `port`: the port is shut, or open again. */
void gw_lossless_obey(struct gw_lossless *lossless, uint16_t port, gw_time time, gw_time now);

/* Whether the port may send control alone, and whether its queue has some. */
bool gw_lossless_is_shut(const struct gw_lossless *lossless, uint16_t port);
bool gw_lossless_has_control(const struct gw_lossless *lossless, uint16_t port);

/* Whether `port` has anything that it may send now; `holds`: packets wait there. */
bool gw_lossless_is_ready(const struct gw_lossless *lossless, uint16_t port, bool holds);

/*
 * The PAUSE that `port` must send before all else, or NULL; it then has nothing to tell, or the
 * pool is empty and it tries again later.
 */
struct gw_pkt *gw_lossless_pause(struct gw_lossless *lossless, uint16_t port,
                                 struct gw_pkt_pool *pool, uint32_t size, gw_time now);

/* A timer of `port` has fired: it may have become ready. */
void gw_lossless_expire(struct gw_lossless *lossless, enum gw_port_timer kind, uint16_t port,
                        gw_time now);

/* Both sides of a port. */
const struct gw_pause_meter *gw_lossless_meter(const struct gw_lossless *lossless, uint16_t port);
const struct gw_pause_gate *gw_lossless_gate(const struct gw_lossless *lossless, uint16_t port);

#endif
