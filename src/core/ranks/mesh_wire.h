/*
 * Names of messages between ranks, and between ranks and their registrar: tags of flows (host/
 * endpoint.h), which both ends agree on.
 *
 *     below 2^31    of collectives: 9 bits of the call's order, 22 of the segment's, which begin
 *                   where the call's kind says (calls/communicator_collectives.c); of questions
 *                   about sums by servers, the via instead of a segment
 *     0x80......    of messages: 24 bits that the application chose
 *     0x90 to 0x93  of the store: kind, and 24 bits of a number (store.h)
 *     0xc0 to 0xc3  a FAILURE without payload: 4 bits of `reason`, 11 each of `about`, `found_by`
 *     0xffffff..    of the mesh itself
 */
#ifndef GW_CORE_MESH_WIRE_H
#define GW_CORE_MESH_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GW_MESH_SEGMENT_BITS = 22,
    GW_MESH_CALL_MASK = (1 << (31 - GW_MESH_SEGMENT_BITS)) - 1,
    GW_MESH_MESSAGE_TAG_MAX = (1 << 24) - 1,
};

#define GW_MESH_BYTES_MAX (UINT64_C(1) << 36) /* of a message */

#define GW_MESH_TAG_MESSAGE UINT32_C(0x80000000)
#define GW_MESH_TAG_STORE   UINT32_C(0x90000000)
#define GW_MESH_TAG_TABLE   UINT32_C(0xffffff00) /* registrar to rank */
#define GW_MESH_TAG_BARE    UINT32_C(0xc0000000) /* FAILUREs without payload, from here on */
#define GW_MESH_TAG_FAILURE UINT32_C(0xffffff01) /* both ways: struct gw_mesh_failure */
#define GW_MESH_TAG_BYE     UINT32_C(0xffffff02) /* both ways; one byte, 0 */

/* What FAILURE says. */
struct gw_mesh_failure {
    uint32_t reason;   /* enum gw_job_reason */
    uint32_t about;    /* rank, or the number of ranks: nobody that is known */
    uint32_t found_by; /* rank, or the number of ranks: the registrar */
};

enum {
    GW_MESH_FAILURE_SIZE = 12, /* its three numbers, big-endian, in their order */
};

void gw_mesh_failure_write(const struct gw_mesh_failure *failure,
                           uint8_t bytes[GW_MESH_FAILURE_SIZE]);

/* False: no job of `world` ranks fails like that. */
bool gw_mesh_failure_read(const uint8_t *bytes, uint64_t size, uint32_t world,
                          struct gw_mesh_failure *failure);

/* Without payload (simulation) the tag says it all. */
uint32_t gw_mesh_failure_tag(const struct gw_mesh_failure *failure);
bool gw_mesh_is_failure_tag(uint32_t tag);
bool gw_mesh_failure_of_tag(uint32_t tag, uint32_t world, struct gw_mesh_failure *failure);

#endif
