/*
 * --pcap: what one link carried, in both directions, as Ethernet frames in a pcap file with
 * nanosecond stamps (the format's magic number 0xa1b23c4d), the payload left out. Host n
 * is 10.x.y.z with n in the lower 24 bits; Gradwire's header is what the wire would carry.
 *
 * Each direction is recorded by the partition of its sender; the two are merged when the run ends.
 */
#include "sim/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/codec.h"
#include "topo/memory.h"

enum {
    ETHERNET_SIZE = 14,
    IP_SIZE = 20,
    UDP_SIZE = 8,
    HEADERS_SIZE = ETHERNET_SIZE + IP_SIZE + UDP_SIZE,
    FRAME_MAX = HEADERS_SIZE + GW_WIRE_HDR_MAX,
    UDP_PORT = 4791 + 1, /* any: no dissector claims it */
    ENTROPY_BASE = 49152,
    RECORDS_MAX = 1 << 24,
};

struct record {
    gw_time at;
    uint16_t size;    /* bytes kept */
    uint32_t on_wire; /* bytes that the frame had */
    uint8_t bytes[FRAME_MAX];
};

struct direction {
    struct record *records;
    uint32_t count;
    uint32_t room;
};

struct gw_capture {
    FILE *file;
    struct direction directions[2];
};

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value);
}

int gw_capture_open(struct gw_sim *sim, char *why)
{
    const struct gw_link *link = &sim->scenario->topo.links[sim->options.pcap_link];
    FILE *file = fopen(sim->options.pcap_file, "wb");
    if (!file) {
        snprintf(why, GW_WHY_MAX, "%s: %s", sim->options.pcap_file, strerror(errno));
        return GW_ERR_SYSTEM;
    }
    sim->capture = gw_memory_aligned(sizeof(*sim->capture));
    sim->capture->file = file;
    for (uint32_t i = 0; i < 2; i++) {
        const struct gw_link_side *side = &link->side[i];
        sim->nodes[sim->place[side->node]].ports[side->port].extras |= GW_SIM_PORT_CAPTURED;
    }
    return GW_OK;
}

static uint32_t ip_of(uint32_t host)
{
    return UINT32_C(10) << 24 | (host & 0xffffff);
}

static uint32_t ip_checksum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < IP_SIZE; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    return ~(sum + (sum >> 16)) & 0xffff;
}

/* Ethernet, IPv4 and UDP headers for a datagram of `length` bytes. */
static void write_headers(uint8_t *bytes, const struct gw_pkt *pkt, const struct gw_frame *frame)
{
    uint8_t *ip = bytes + ETHERNET_SIZE, *udp = ip + IP_SIZE;
    memset(bytes, 0, HEADERS_SIZE);
    bytes[0] = bytes[6] = 2; /* locally administered addresses */
    put32(bytes + 2, pkt->dst);
    put32(bytes + 8, pkt->src);
    put16(bytes + 12, 0x0800);
    ip[0] = 0x45;
    ip[1] = frame->tos;
    put16(ip + 2, IP_SIZE + UDP_SIZE + frame->length);
    ip[8] = 64; /* time to live */
    ip[9] = 17; /* UDP */
    put32(ip + 12, ip_of(pkt->src));
    put32(ip + 16, ip_of(pkt->dst));
    put16(ip + 10, ip_checksum(ip));
    put16(udp, ENTROPY_BASE + (frame->entropy & 0x3fff));
    put16(udp + 2, UDP_PORT);
    put16(udp + 4, UDP_SIZE + frame->length);
}

void gw_capture_packet(struct gw_sim *sim, const struct gw_sim_node *node, uint16_t port,
                       const struct gw_pkt *pkt, gw_time at)
{
    const struct gw_link *link = &sim->scenario->topo.links[sim->options.pcap_link];
    bool is_second = link->side[1].node == node->id && link->side[1].port == port;
    struct direction *direction = &sim->capture->directions[is_second];
    if (direction->count == RECORDS_MAX)
        return;
    direction->records = gw_memory_grow(direction->records, &direction->room, direction->count + 1,
                                        sizeof(*direction->records));
    const struct gw_codec codec = {.cookie = sim->options.seed};
    struct gw_frame frame;
    struct record *record = &direction->records[direction->count++];
    gw_codec_encode(&codec, pkt, &frame);
    record->at = at;
    record->size = (uint16_t)(HEADERS_SIZE + frame.hdr_size);
    record->on_wire = HEADERS_SIZE + frame.length;
    write_headers(record->bytes, pkt, &frame);
    memcpy(record->bytes + HEADERS_SIZE, frame.hdr, frame.hdr_size);
}

static void write_record(FILE *file, const struct record *record)
{
    uint32_t header[] = {(uint32_t)(record->at / GW_S), (uint32_t)(record->at % GW_S / GW_NS),
                         record->size, record->on_wire};
    fwrite(header, sizeof(header), 1, file);
    fwrite(record->bytes, record->size, 1, file);
}

int gw_capture_write(struct gw_sim *sim)
{
    if (!sim->capture)
        return GW_OK;
    /* magic, version 2.4, zone, accuracy, snapshot length, Ethernet; in this machine's byte order
     */
    const uint32_t header[] = {0xa1b23c4d, 4u << 16 | 2, 0, 0, FRAME_MAX, 1};
    FILE *file = sim->capture->file;
    struct direction *a = &sim->capture->directions[0], *b = &sim->capture->directions[1];
    fwrite(header, sizeof(header), 1, file);
    for (uint32_t i = 0, j = 0; i < a->count || j < b->count;) {
        bool first = j == b->count || (i < a->count && a->records[i].at <= b->records[j].at);
        write_record(file, first ? &a->records[i++] : &b->records[j++]);
    }
    if (fflush(file) != 0 || ferror(file)) {
        snprintf(sim->why, sizeof(sim->why), "%s: cannot write: %s", sim->options.pcap_file,
                 strerror(errno));
        return GW_ERR_SYSTEM;
    }
    return GW_OK;
}

void gw_capture_close(struct gw_sim *sim)
{
    if (!sim->capture)
        return;
    fclose(sim->capture->file);
    free(sim->capture->directions[0].records);
    free(sim->capture->directions[1].records);
    free(sim->capture);
    sim->capture = NULL;
}
