/*
 * Fuzz target: the gate and the decoder on any datagram.
 *
 * Property: nothing is read outside the datagram, and what is accepted encodes to the same bytes,
 * as a header and as a packet.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "core/codec.h"
#include "wire/attach.h"

/* Inputs that passed, by kind; a target that accepts nothing tests nothing. */
static uint32_t accepted[GW_WIRE_KINDS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_wire_hdr hdr;
    enum gw_wire_kind kind;
    uint8_t again[GW_WIRE_HDR_MAX];
    uint32_t length = (uint32_t)size;
    /* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
    uint8_t *bytes = malloc(size + (size == 0));
    GW_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    (void)gw_wire_version(bytes, length);
    if (gw_wire_validate(bytes, length, &kind) == 0 && gw_wire_decode(bytes, length, &hdr) == 0) {
        uint32_t hdr_size = gw_wire_encode(&hdr, again);
        GW_ASSERT(hdr_size <= length && hdr.kind == kind);
        GW_ASSERT(memcmp(again, bytes, hdr_size) == 0);
        accepted[kind]++;

        struct gw_pkt pkt;
        struct gw_codec codec = {.cookie = hdr.cookie};
        struct gw_frame frame = {.length = length}, frame_again;
        memcpy(frame.hdr, bytes, hdr_size);
        GW_ASSERT(gw_codec_decode(&codec, &frame, 0, &pkt) == 0);
        GW_ASSERT(frame.hdr_size == hdr_size && gw_codec_payload(&pkt) == length - hdr_size);
        gw_codec_encode(&codec, &pkt, &frame_again);
        GW_ASSERT(frame_again.length == length && frame_again.hdr_size == hdr_size);
        GW_ASSERT(memcmp(frame_again.hdr, bytes, hdr_size) == 0);
    }
    free(bytes);
    return 0;
}

enum {
    ROUNDS = 300000,
};

static void check_reached(void)
{
    for (int kind = 0; kind < GW_WIRE_KINDS; kind++)
        if (kind != GW_ATTACH_KIND)
            assert_in_range(accepted[kind], ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "wire",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
