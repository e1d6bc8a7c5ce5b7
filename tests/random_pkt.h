/* Packets at random: whatever an endpoint, a switch or somebody who keeps to the wire's format may
 * send. */
#ifndef GW_TESTS_RANDOM_PKT_H
#define GW_TESTS_RANDOM_PKT_H

#include "base/prng.h"
#include "core/pkt.h"

/*
 * A packet of any kind that the codec takes, without the buffer of its payload, which is at most
 * `payload_max` bytes; sent at `now` or up to two minutes earlier, if its kind says when. Fields
 * that its kind does not use are 0.
 */
struct gw_pkt gw_random_pkt(struct gw_prng *prng, uint32_t payload_max, gw_time now);

#endif
