/*
 * Stations of one process; see memory_datapath.h. They are listed in one place, `town`, which is
 * locked for reading while a datagram is handed over: a station that others may find is never half
 * closed.
 */
#define _GNU_SOURCE
#include "net/memory/memory_datapath.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/codec.h"
#include "net/datagram.h"
#include "net/memory/inbox.h"
#include "net/tx_faults.h"
#include "wire/attach.h"

enum {
    FREE_PORT_FIRST = 49152, /* of those for everybody (RFC 6335, section 6) */
    PORT_END = 65536,
    INBOX_BYTES = 256 << 10,    /* where nobody asks for more */
    INBOX_BYTES_MAX = 64 << 20, /* whatever is asked for */
    PIECES = 3,                 /* of a datagram: header, payload, authentication */
};

struct memory {
    struct gw_datapath base;
    struct gw_inbox inbox;
    uint32_t taken;  /* of the inbox, by the last call: still in use */
    uint8_t *sealed; /* a datagram that is encrypted; NULL: none is */
    struct gw_tx_faults faults;
    struct memory *next; /* in the town */
};

/* All stations of the process. */
static struct {
    pthread_rwlock_t lock;
    struct memory *first;
} town = {.lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};

static bool is_wildcard(const struct gw_sock_addr *addr)
{
    static const uint8_t zeros[GW_SOCK_ADDR_SIZE];
    const void *host = &((const struct sockaddr_in *)&addr->storage)->sin_addr;
    if (!gw_sock_addr_is_v6(addr))
        return memcmp(host, zeros, sizeof(struct in_addr)) == 0;
    host = &((const struct sockaddr_in6 *)&addr->storage)->sin6_addr;
    return memcmp(host, zeros, sizeof(zeros)) == 0;
}

/* Whether somebody has one of our ports already, at a host that may be ours. */
static bool is_taken(const struct gw_sock_addr *ours, uint32_t port, uint32_t count)
{
    for (const struct memory *other = town.first; other; other = other->next) {
        const struct gw_sock_addr *theirs = &other->base.address;
        uint32_t first = gw_sock_addr_port(theirs), end = first + other->base.cfg.entropies;
        bool may_meet = gw_sock_addr_is_same_host(ours, theirs) ||
                        (gw_sock_addr_is_v6(ours) == gw_sock_addr_is_v6(theirs) &&
                         (is_wildcard(ours) || is_wildcard(theirs)));
        if (may_meet && port < end && first < port + count)
            return true;
    }
    return false;
}

/* Finds a row of ports and moves in. False: there is no room. */
static bool enter(struct memory *memory)
{
    struct gw_sock_addr *address = &memory->base.address;
    uint32_t count = memory->base.cfg.entropies, port = gw_sock_addr_port(address);
    bool is_asked_for = port != 0;
    pthread_rwlock_wrlock(&town.lock);
    if (!is_asked_for)
        port = FREE_PORT_FIRST;
    while (!is_asked_for && port + count <= PORT_END && is_taken(address, port, count))
        port++;
    bool has_room = port + count <= PORT_END && !is_taken(address, port, count);
    if (has_room) {
        gw_sock_addr_set_port(address, (uint16_t)port);
        memory->next = town.first;
        town.first = memory;
    }
    pthread_rwlock_unlock(&town.lock);
    return has_room;
}

static void leave(struct memory *memory)
{
    pthread_rwlock_wrlock(&town.lock);
    struct memory **at = &town.first;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
    pthread_rwlock_unlock(&town.lock);
}

/* Who is at an address; the town is locked. A process has few stations, and a walk is made once for
 * a train. */
static struct memory *find(const struct gw_sock_addr *to)
{
    struct memory *other = town.first;
    while (other && (gw_sock_addr_port(&other->base.address) != gw_sock_addr_port(to) ||
                     gw_sock_addr_is_v6(&other->base.address) != gw_sock_addr_is_v6(to) ||
                     !(gw_sock_addr_is_same_host(&other->base.address, to) ||
                       is_wildcard(&other->base.address))))
        other = other->next;
    return other;
}

static struct memory *memory_of(struct gw_datapath *datapath)
{
    return (struct memory *)datapath;
}

static void free_memory(struct memory *memory)
{
    free(memory->sealed);
    gw_datapath_fini(&memory->base);
    free(memory);
}

static int open_memory(const struct gw_datapath_cfg *cfg, struct gw_datapath **out, char *error)
{
    struct memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    memory->base.ops = &gw_datapath_memory;
    gw_tx_faults_init(&memory->faults, &cfg->faults);
    int code = gw_datapath_init(&memory->base, cfg, error);
    if (code) {
        free_memory(memory);
        return code;
    }
    uint32_t bytes = cfg->buffer_bytes ? cfg->buffer_bytes : INBOX_BYTES;
    uint32_t packet = GW_WIRE_HDR_MAX + cfg->mtu + GW_AUTH_SIZE;
    if (cfg->encrypts && !(memory->sealed = malloc(packet))) {
        free_memory(memory);
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    }
    code = gw_inbox_init(&memory->inbox, packet > GW_ATTACH_SIZE_MAX ? packet : GW_ATTACH_SIZE_MAX,
                         bytes < INBOX_BYTES_MAX ? bytes : INBOX_BYTES_MAX);
    if (code) {
        free_memory(memory);
        return gw_net_fail(error, code, "no room for an inbox of %u bytes", bytes);
    }
    if (!enter(memory)) {
        char name[GW_SOCK_ADDR_NAME_MAX];
        gw_sock_addr_format(&memory->base.address, name, sizeof(name));
        gw_inbox_fini(&memory->inbox);
        free_memory(memory);
        return gw_net_fail(error, GW_ERR_SYSTEM, "%u ports from %s on are not free", cfg->entropies,
                           name);
    }
    *out = &memory->base;
    return GW_OK;
}

static void close_memory(struct gw_datapath *datapath)
{
    struct memory *memory = memory_of(datapath);
    leave(memory);
    gw_tx_faults_fini(&memory->faults, memory->base.cfg.pool);
    gw_inbox_fini(&memory->inbox);
    free_memory(memory);
}

/* A train on its way out. */
struct departure {
    struct memory *from, *to; /* to: NULL: nobody is there */
    const struct gw_datapath_peer *peer;
    struct gw_codec codec;
    struct gw_inbox_push push;
};

/* Where what goes to `to` by our port of this entropy comes from. */
static struct gw_sock_addr source_of(const struct memory *memory, const struct gw_sock_addr *to,
                                     uint16_t entropy)
{
    const struct gw_sock_addr *ours = &memory->base.address;
    struct gw_sock_addr from = is_wildcard(ours) ? *to : *ours;
    uint32_t port = gw_sock_addr_port(ours) + entropy % (uint32_t)memory->base.cfg.entropies;
    gw_sock_addr_set_port(&from, (uint16_t)port);
    return from;
}

/* Encrypts a datagram that lies in pieces; returns how many it has then. */
static uint32_t encrypt(struct departure *departure, struct iovec *pieces, uint32_t count)
{
    uint8_t *sealed = departure->from->sealed;
    uint32_t size = 0;
    GW_ASSERT(sealed);
    for (uint32_t i = 0; i < count; i++) {
        GW_ASSERT(size + pieces[i].iov_len <= GW_WIRE_HDR_MAX + departure->from->base.cfg.mtu);
        memcpy(sealed + size, pieces[i].iov_base, pieces[i].iov_len);
        size += (uint32_t)pieces[i].iov_len;
    }
    gw_auth_encrypt(departure->peer->auth, sealed, size, sealed);
    pieces[0] = (struct iovec){sealed, size + GW_AUTH_SIZE};
    return 1;
}

/* Hands one packet over; it stays the caller's. */
static void put(struct departure *departure, const struct gw_pkt *pkt)
{
    struct memory *memory = departure->from;
    struct gw_frame frame;
    uint8_t code[GW_AUTH_SIZE];
    if (!departure->to) {
        memory->base.stats.send_errors++;
        return;
    }
    gw_codec_encode(&departure->codec, pkt, &frame);
    uint32_t payload = frame.length - frame.hdr_size, count = 1;
    struct iovec pieces[PIECES] = {{frame.hdr, frame.hdr_size}};
    if (payload)
        pieces[count++] =
            (struct iovec){(void *)gw_buf_payload(memory->base.cfg.pool->bufs, pkt->buf), payload};
    if (gw_auth_encrypts(departure->peer->auth)) {
        count = encrypt(departure, pieces, count);
    } else if (departure->peer->auth) {
        gw_auth_seal(departure->peer->auth, pieces, count, code);
        pieces[count++] = (struct iovec){code, sizeof(code)};
    }
    departure->push.tos = frame.tos;
    departure->push.pieces = pieces;
    departure->push.piece_count = count;
    gw_inbox_push(&departure->to->inbox, &departure->push);
    memory->base.stats.sent++;
}

static void put_and_release(struct departure *departure, struct gw_pkt *pkt)
{
    put(departure, pkt);
    gw_pkt_release(departure->from->base.cfg.pool, pkt);
}

/* Hands one packet over, or does to it what was asked for. */
static void put_with_faults(struct departure *departure, uint16_t number, struct gw_pkt *pkt)
{
    struct memory *memory = departure->from;
    switch (gw_tx_faults_draw(&memory->faults, pkt, number, &memory->base.stats)) {
    case GW_TX_LOST:
        gw_pkt_release(memory->base.cfg.pool, pkt);
        return;
    case GW_TX_LATE:
        return;
    case GW_TX_TWICE:
        put(departure, pkt);
        break;
    case GW_TX_SENT:
        break;
    }
    put_and_release(departure, pkt);
}

static int send_memory(struct gw_datapath *datapath, uint16_t number, struct gw_pkt **pkts,
                       uint32_t count, char *error)
{
    struct memory *memory = memory_of(datapath);
    const struct gw_datapath_peer *peer = gw_datapath_peer(datapath, number);
    (void)error;
    GW_ASSERT(count > 0 && count <= GW_DATAPATH_TRAIN_MAX);
    if (!peer) {
        for (uint32_t i = 0; i < count; i++)
            gw_pkt_release(memory->base.cfg.pool, pkts[i]);
        memory->base.stats.send_errors += count;
        return GW_OK;
    }
    struct departure departure = {
        .from = memory,
        .peer = peer,
        .codec = {.cookie = peer->tx_cookie},
        .push = {.from = source_of(memory, &peer->addr, pkts[0]->entropy)},
    };
    struct gw_pkt *late = gw_tx_faults_take_late(&memory->faults, number);
    bool has_faults = gw_tx_faults_exist(&memory->faults);
    if (has_faults)
        count = gw_pkt_settle(memory->base.cfg.pool, pkts, count, &memory->base.stats.no_room);
    pthread_rwlock_rdlock(&town.lock);
    departure.to = find(&peer->addr);
    for (uint32_t i = 0; i < count; i++) {
        if (has_faults)
            put_with_faults(&departure, number, pkts[i]);
        else
            put_and_release(&departure, pkts[i]);
    }
    if (late)
        put_and_release(&departure, late);
    pthread_rwlock_unlock(&town.lock);
    memory->base.stats.tx_trains++;
    return GW_OK;
}

static void send_control(struct gw_datapath *datapath, const struct gw_sock_addr *to,
                         const uint8_t *bytes, uint32_t length)
{
    struct memory *memory = memory_of(datapath);
    const struct iovec piece = {(void *)bytes, length};
    const struct gw_inbox_push push = {
        .from = source_of(memory, to, 0), .pieces = &piece, .piece_count = 1};
    pthread_rwlock_rdlock(&town.lock);
    struct memory *other = find(to);
    if (other)
        gw_inbox_push(&other->inbox, &push);
    pthread_rwlock_unlock(&town.lock);
    memory->base.stats.send_errors += !other;
}

/* Whether a datagram came as part of the train that `first` begins. */
static bool is_of_train(const struct gw_inbox_item *first, const struct gw_inbox_item *item)
{
    return item->length >= GW_WIRE_HDR_MIN && item->tos == first->tos &&
           gw_wire_version(item->bytes, item->length) == GW_WIRE_VERSION &&
           !gw_attach_is(item->bytes, item->length) &&
           gw_wire_cookie(item->bytes) == gw_wire_cookie(first->bytes) &&
           gw_sock_addr_is_same(&item->from, &first->from);
}

/* Takes the train at the front, of at most `waiting` datagrams, which is this neighbour's. */
static void take_train(struct memory *memory, const struct gw_datapath_peer *peer, uint32_t waiting,
                       gw_time now, struct gw_datapath_train *train)
{
    const struct gw_inbox_item *first = gw_inbox_at(&memory->inbox, 0);
    struct gw_datagram datagram = {
        .peer = peer,
        .cookie = peer->rx_cookie,
        .entropy = (uint16_t)(gw_sock_addr_port(&first->from) - gw_sock_addr_port(&peer->addr)),
        .tos = first->tos,
    };
    uint32_t count = 0;
    while (count < waiting && count < GW_DATAPATH_TRAIN_MAX) {
        struct gw_inbox_item *item = gw_inbox_at(&memory->inbox, count);
        if (!is_of_train(first, item))
            break;
        datagram.bytes = item->bytes;
        datagram.length = item->length;
        struct gw_pkt *pkt = gw_datagram_take(&memory->base, &datagram, now);
        if (pkt)
            train->pkts[train->count++] = pkt;
        count++;
    }
    memory->base.stats.received += train->count;
    memory->taken = count;
    train->peer = (uint16_t)peer->rx_cookie;
}

static int receive(struct gw_datapath *datapath, gw_time now, struct gw_datapath_train *train,
                   char *error)
{
    struct memory *memory = memory_of(datapath);
    struct gw_datapath_stats *stats = &memory->base.stats;
    uint32_t waiting = gw_inbox_look(&memory->inbox, memory->taken, &stats->kernel_drops);
    (void)error;
    memory->taken = waiting != 0;
    train->count = 0;
    train->controls = 0;
    if (!waiting)
        return 0;
    const struct gw_inbox_item *first = gw_inbox_at(&memory->inbox, 0);
    stats->rx_trains++;
    switch (gw_datagram_look(datapath, first->bytes, first->length, 1)) {
    case GW_DATAGRAM_REFUSED:
        return 1;
    case GW_DATAGRAM_CONTROL:
        if (gw_attach_step_of(first->bytes) == GW_ATTACH_PROBE) { /* of a group, and we hear none */
            stats->malformed++;
            return 1;
        }
        train->control = first->bytes;
        train->controls = 1;
        train->length = first->length;
        train->from = first->from;
        return 1;
    case GW_DATAGRAM_PACKET:
        break;
    }
    const struct gw_datapath_peer *peer =
        gw_datagram_sender(datapath, gw_wire_cookie(first->bytes), &first->from);
    if (peer)
        take_train(memory, peer, waiting, now, train);
    stats->wrong_cookie += !peer;
    return 1;
}

/* A full inbox drops: nothing waits for room. */
static bool can_send(const struct gw_datapath *datapath)
{
    (void)datapath;
    return true;
}

static int flush(struct gw_datapath *datapath, char *error)
{
    (void)datapath, (void)error;
    return GW_OK;
}

static int blocked_fd(const struct gw_datapath *datapath)
{
    (void)datapath;
    return -1;
}

static uint32_t receive_fds(const struct gw_datapath *datapath, int *fds)
{
    fds[0] = ((const struct memory *)datapath)->inbox.fd;
    return 1;
}

const struct gw_datapath_ops gw_datapath_memory = {
    .name = "memory",
    .open = open_memory,
    .close = close_memory,
    .receive = receive,
    .can_send = can_send,
    .send = send_memory,
    .flush = flush,
    .send_control = send_control,
    .receive_fds = receive_fds,
    .blocked_fd = blocked_fd,
};
