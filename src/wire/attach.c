/* Encode and decode of the attach protocol; the layout is drawn in attach.h. */
#include "wire/attach.h"

#include <string.h>

#include "base/error.h"
#include "wire/octets.h"
#include "wire/wire.h"

enum {
    OFFSET_STEP = 3,
    OFFSET_SESSION = 4,
    OFFSET_PROOF = 20,
    OFFSET_COOKIE = 36,
    OFFSET_ADDRESS = 44,
    OFFSET_JOB = 48,
    OFFSET_WORLD = 52,
    OFFSET_RANK = 54,
    OFFSET_FLAGS = 56, /* and the role above them */
    ROLE_SHIFT = 7,
    FLAGS_ROOM = 127,
    OFFSET_NOTICE = 57,
    OFFSET_ENTROPIES = 58,
    OFFSET_NUMBER = 60,
    OFFSET_KEY_ID = 64,
    OFFSET_REASON = 72,
    OFFSET_GROUP = 76, /* of ASK: the table's sum */
    TABLE_SIZE = 4,
    OFFSET_GROUP_COOKIE = 92, /* of ASK: the responder's */
    OFFSET_GROUP_PORT = 100,
    OFFSET_MTU = 102,
    OFFSET_WAY_RATE = 104,
    OFFSET_WAY_RTT = 108,
    OFFSET_RTT = 110,
    OFFSET_SILENCE = 112,
    OFFSET_SILENCE_PORT = 128,
    OFFSET_SILENCE_MS = 130,
};

_Static_assert(GW_ATTACH_ROLES == 1 << (8 - ROLE_SHIFT), "every value is a role");

bool gw_attach_is(const uint8_t *bytes, uint32_t length)
{
    bool is_whole = length >= GW_ATTACH_SIZE_MIN && length <= GW_ATTACH_SIZE_MAX;
    if (!is_whole || gw_octets_get(bytes, 2) != GW_WIRE_MAGIC || (bytes[2] & 15) != GW_ATTACH_KIND)
        return false;
    return length == GW_ATTACH_SIZE || gw_attach_version(bytes) != GW_WIRE_VERSION;
}

uint32_t gw_attach_version(const uint8_t *bytes)
{
    return bytes[2] >> 4;
}

uint8_t gw_attach_step_of(const uint8_t *bytes)
{
    return bytes[OFFSET_STEP];
}

uint64_t gw_attach_cookie_of(const uint8_t *bytes)
{
    return gw_octets_get(bytes + OFFSET_COOKIE, 8);
}

void gw_attach_session_of(const uint8_t *bytes, uint8_t session[GW_ATTACH_NONCE_SIZE])
{
    memcpy(session, bytes + OFFSET_SESSION, GW_ATTACH_NONCE_SIZE);
}

bool gw_attach_is_same_group(const struct gw_attach_group *a, const struct gw_attach_group *b)
{
    return a->cookie == b->cookie && a->port == b->port &&
           memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* Of ACCEPT; the zeros of all other messages are no group. In ASK a table and a cookie are there
 * without one. */
static bool read_group(const uint8_t *bytes, struct gw_attach_group *group)
{
    static const struct gw_attach_group none;
    bool asks = bytes[OFFSET_STEP] == GW_ATTACH_ASK;
    group->cookie = asks ? 0 : gw_octets_get(bytes + OFFSET_GROUP_COOKIE, 8);
    group->port = (uint16_t)gw_octets_get(bytes + OFFSET_GROUP_PORT, 2);
    memcpy(group->address, bytes + OFFSET_GROUP, sizeof(group->address));
    if (asks)
        memset(group->address, 0, TABLE_SIZE);
    bool is_group = group->port && bytes[OFFSET_STEP] == GW_ATTACH_ACCEPT;
    return is_group || gw_attach_is_same_group(group, &none);
}

/* Without a port there is none, and nothing else of it. */
static bool read_silence(const uint8_t *bytes, struct gw_attach_silence *silence)
{
    static const struct gw_attach_silence none;
    silence->port = (uint16_t)gw_octets_get(bytes + OFFSET_SILENCE_PORT, 2);
    silence->ms = (uint16_t)gw_octets_get(bytes + OFFSET_SILENCE_MS, 2);
    memcpy(silence->address, bytes + OFFSET_SILENCE, sizeof(silence->address));
    return silence->port || memcmp(silence, &none, sizeof(none)) == 0;
}

int gw_attach_decode(const uint8_t *bytes, uint32_t length, struct gw_attach_msg *msg)
{
    if (!gw_attach_is(bytes, length))
        return GW_ERR_MALFORMED;
    if (gw_attach_version(bytes) != GW_WIRE_VERSION)
        return GW_ERR_VERSION;
    bool asks = bytes[OFFSET_STEP] == GW_ATTACH_ASK;
    uint32_t last = (uint32_t)gw_octets_get(bytes + OFFSET_REASON, 4), reason = asks ? 0 : last;
    *msg = (struct gw_attach_msg){
        .cookie = gw_attach_cookie_of(bytes),
        .told_cookie = asks ? gw_octets_get(bytes + OFFSET_GROUP_COOKIE, 8) : 0,
        .key_id = gw_octets_get(bytes + OFFSET_KEY_ID, 8),
        .address = (uint32_t)gw_octets_get(bytes + OFFSET_ADDRESS, 4),
        .job = (uint32_t)gw_octets_get(bytes + OFFSET_JOB, 4),
        .number = (uint32_t)gw_octets_get(bytes + OFFSET_NUMBER, 4),
        .world = (uint16_t)gw_octets_get(bytes + OFFSET_WORLD, 2),
        .rank = (uint16_t)gw_octets_get(bytes + OFFSET_RANK, 2),
        .entropies = (uint16_t)gw_octets_get(bytes + OFFSET_ENTROPIES, 2),
        .mtu = (uint16_t)gw_octets_get(bytes + OFFSET_MTU, 2),
        .rtt = (uint16_t)gw_octets_get(bytes + OFFSET_RTT, 2),
        .way = {.rate_kbps = (uint32_t)gw_octets_get(bytes + OFFSET_WAY_RATE, 4),
                .rtt = (uint16_t)gw_octets_get(bytes + OFFSET_WAY_RTT, 2)},
        .step = bytes[OFFSET_STEP],
        .role = bytes[OFFSET_FLAGS] >> ROLE_SHIFT,
        .flags = bytes[OFFSET_FLAGS] & FLAGS_ROOM,
        .notice = bytes[OFFSET_NOTICE],
        .life = asks ? last : 0,
        .table = asks ? (uint32_t)gw_octets_get(bytes + OFFSET_GROUP, TABLE_SIZE) : 0,
        .reason = (uint8_t)reason,
    };
    memcpy(msg->session, bytes + OFFSET_SESSION, sizeof(msg->session));
    memcpy(msg->proof, bytes + OFFSET_PROOF, sizeof(msg->proof));
    bool is_good = read_group(bytes, &msg->group) && read_silence(bytes, &msg->way.silence) &&
                   msg->step < GW_ATTACH_STEPS && msg->flags <= GW_ATTACH_FLAGS &&
                   msg->notice < GW_ATTACH_NOTICES && reason < GW_ATTACH_REASONS &&
                   (reason != GW_ATTACH_OK) == (msg->step == GW_ATTACH_REFUSE) &&
                   (msg->address != 0 || msg->step == GW_ATTACH_REFUSE) && msg->entropies >= 1 &&
                   msg->mtu >= 1 && msg->mtu <= GW_WIRE_PAYLOAD_MAX;
    return is_good ? GW_OK : GW_ERR_MALFORMED;
}

void gw_attach_encode(const struct gw_attach_msg *msg, uint8_t *bytes)
{
    memset(bytes, 0, GW_ATTACH_SIZE);
    gw_octets_put(bytes, GW_WIRE_MAGIC, 2);
    bytes[2] = (uint8_t)(GW_WIRE_VERSION << 4 | GW_ATTACH_KIND);
    bytes[OFFSET_STEP] = msg->step;
    memcpy(bytes + OFFSET_SESSION, msg->session, sizeof(msg->session));
    memcpy(bytes + OFFSET_PROOF, msg->proof, sizeof(msg->proof));
    gw_octets_put(bytes + OFFSET_COOKIE, msg->cookie, 8);
    gw_octets_put(bytes + OFFSET_ADDRESS, msg->address, 4);
    gw_octets_put(bytes + OFFSET_JOB, msg->job, 4);
    gw_octets_put(bytes + OFFSET_WORLD, msg->world, 2);
    gw_octets_put(bytes + OFFSET_RANK, msg->rank, 2);
    bytes[OFFSET_FLAGS] = (uint8_t)(msg->role << ROLE_SHIFT | msg->flags);
    bytes[OFFSET_NOTICE] = msg->notice;
    gw_octets_put(bytes + OFFSET_ENTROPIES, msg->entropies, 2);
    gw_octets_put(bytes + OFFSET_NUMBER, msg->number, 4);
    gw_octets_put(bytes + OFFSET_KEY_ID, msg->key_id, 8);
    memcpy(bytes + OFFSET_GROUP, msg->group.address, sizeof(msg->group.address));
    if (msg->step == GW_ATTACH_ASK)
        gw_octets_put(bytes + OFFSET_GROUP, msg->table, TABLE_SIZE);
    gw_octets_put(bytes + OFFSET_GROUP_COOKIE,
                  msg->step == GW_ATTACH_ASK ? msg->told_cookie : msg->group.cookie, 8);
    gw_octets_put(bytes + OFFSET_GROUP_PORT, msg->group.port, 2);
    gw_octets_put(bytes + OFFSET_MTU, msg->mtu, 2);
    gw_octets_put(bytes + OFFSET_WAY_RATE, msg->way.rate_kbps, 4);
    gw_octets_put(bytes + OFFSET_WAY_RTT, msg->way.rtt, 2);
    gw_octets_put(bytes + OFFSET_RTT, msg->rtt, 2);
    memcpy(bytes + OFFSET_SILENCE, msg->way.silence.address, sizeof(msg->way.silence.address));
    gw_octets_put(bytes + OFFSET_SILENCE_PORT, msg->way.silence.port, 2);
    gw_octets_put(bytes + OFFSET_SILENCE_MS, msg->way.silence.ms, 2);
    gw_octets_put(bytes + OFFSET_REASON, msg->step == GW_ATTACH_ASK ? msg->life : msg->reason, 4);
}
