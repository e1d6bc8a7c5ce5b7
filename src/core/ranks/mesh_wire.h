/*
 * Names of messages between ranks, and between ranks and their registrar: tags of flows (host/
 * endpoint.h), which both ends agree on.
 *
 *     below 2^31    of collectives: 9 bits of the call's number, 22 of the segment's
 *     0x80......    of messages: 24 bits that the application chose
 *     0x90 to 0x93  of the store: kind, and 24 bits of a number (store.h)
 *     0xffffff..    of the mesh itself
 */
#ifndef GW_CORE_MESH_WIRE_H
#define GW_CORE_MESH_WIRE_H

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
#define GW_MESH_TAG_FAILURE UINT32_C(0xffffff01) /* both ways: struct gw_mesh_failure */
#define GW_MESH_TAG_BYE     UINT32_C(0xffffff02) /* both ways; one byte, 0 */

/* What FAILURE says, as on the wire: big-endian. */
struct gw_mesh_failure {
    uint32_t reason;   /* enum gw_job_reason */
    uint32_t about;    /* rank, or the number of ranks: nobody that is known */
    uint32_t found_by; /* likewise */
};

#endif
