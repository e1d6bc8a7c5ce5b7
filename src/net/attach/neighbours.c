/* The table of sessions, their events, and where messages go; see neighbours.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/stall.h"
#include "net/attach/neighbours_impl.h"

/* At least 1, of a rate that is known. */
static uint32_t kbps_of(uint64_t rate_bps)
{
    uint64_t rate = (rate_bps + 999) / 1000;
    return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

struct gw_neighbours *gw_neighbours_open(const struct gw_neighbours_cfg *cfg)
{
    struct gw_neighbours *own = calloc(1, sizeof(*own));
    if (!own)
        return NULL;
    own->cfg = *cfg;
    own->cfg.places = cfg->places ? cfg->places : cfg->peers_max;
    own->look_at = GW_TIME_NEVER;
    own->rate_kbps = own->way.rate_kbps = kbps_of(cfg->rate_bps);
    gw_index_queue_init(&own->waiting, GW_NEIGHBOURS_EVENTS_MAX);
    own->sessions = calloc(cfg->peers_max, sizeof(*own->sessions));
    if (!own->sessions) {
        free(own);
        return NULL;
    }
    gw_key_random(own->secret, sizeof(own->secret));
    gw_key_random(&own->life, sizeof(own->life));
    return own;
}

void gw_neighbours_close(struct gw_neighbours *own)
{
    free(own->sessions);
    free(own);
}

static struct gw_neighbour_event event_of(const struct gw_neighbours *own,
                                          enum gw_neighbour_event_kind kind, uint16_t peer)
{
    const struct gw_session *session = &own->sessions[peer];
    return (struct gw_neighbour_event){.kind = kind,
                                       .peer = peer,
                                       .dial = session->dial,
                                       .said = session->said,
                                       .heard_at = session->heard_at,
                                       .addr = session->addr};
}

bool gw_neighbours_has_room(const struct gw_neighbours *own)
{
    return !gw_index_queue_is_full(&own->waiting);
}

void gw_neighbours_post(struct gw_neighbours *own, enum gw_neighbour_event_kind kind, uint16_t peer)
{
    own->events[gw_index_queue_push(&own->waiting)] = event_of(own, kind, peer);
}

bool gw_neighbours_poll(struct gw_neighbours *own, struct gw_neighbour_event *event)
{
    if (own->waiting.count == 0)
        return false;
    *event = own->events[gw_index_queue_pop(&own->waiting)];
    return true;
}

/* Makes all proofs worthless: then nobody can replay the sessions that have ended. */
static void forget_ended(struct gw_neighbours *own)
{
    gw_key_random(own->secret, sizeof(own->secret));
    for (uint32_t i = 0; i < own->cfg.peers_max; i++)
        if (own->sessions[i].state == GW_SESSION_ENDED)
            own->sessions[i].state = GW_SESSION_FREE;
}

static int find_free(const struct gw_neighbours *own)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++)
        if (own->sessions[i].state == GW_SESSION_FREE)
            return (int)i;
    return -1;
}

int gw_neighbours_claim(struct gw_neighbours *own, gw_time now)
{
    int peer = find_free(own);
    if (peer < 0 && own->waiting.count == 0) { /* what has still to be polled keeps its number */
        forget_ended(own);
        peer = find_free(own);
    }
    if (peer < 0)
        return -1;
    struct gw_session *session = &own->sessions[peer];
    memset(session, 0, sizeof(*session));
    gw_key_random(&session->rx_cookie, sizeof(session->rx_cookie));
    session->rx_cookie = (session->rx_cookie & ~UINT64_C(0xffff)) | (uint64_t)peer;
    session->heard_at = now;
    return peer;
}

void gw_neighbours_write(const struct gw_neighbours *own, const struct gw_session *session,
                         struct gw_attach_msg *msg, uint8_t *bytes)
{
    memcpy(msg->session, session->id, sizeof(msg->session));
    msg->cookie = session->rx_cookie;
    msg->key_id = session->key->id;
    msg->address = msg->address ? msg->address : own->cfg.address;
    msg->role = own->cfg.role;
    msg->entropies = own->cfg.entropies;
    msg->mtu = own->cfg.mtu;
    const struct gw_attach_silence silence = msg->way.silence;
    msg->way = own->way;
    msg->way.silence = silence;
    gw_attach_encode(msg, bytes);
    gw_key_sign(session->key, bytes);
}

/* Ends the sessions that have been silent for too long. */
static void look_for_silence(struct gw_neighbours *own, gw_time now)
{
    own->look_at = gw_time_add(now, own->cfg.silence / 4);
    for (uint32_t i = 0; i < own->cfg.peers_max && gw_neighbours_has_room(own); i++) {
        struct gw_session *session = &own->sessions[i];
        if (session->state != GW_SESSION_UP ||
            !gw_stall_is_over(session->heard_at, own->cfg.silence, now))
            continue;
        gw_neighbours_post(own, GW_NEIGHBOUR_DOWN, (uint16_t)i);
        session->state = session->dial < 0 ? GW_SESSION_ENDED : GW_SESSION_FREE;
        if (session->dial >= 0)
            gw_neighbours_dial_again(own, session->dial, now);
    }
}

bool gw_neighbours_output(struct gw_neighbours *own, struct gw_sock_addr *to,
                          uint8_t bytes[GW_ATTACH_SIZE], gw_time now)
{
    gw_neighbours_spare(own, now);
    if (own->look_at != GW_TIME_NEVER && !gw_time_before(now, own->look_at))
        look_for_silence(own, now);
    return gw_neighbours_ask_next(own, to, bytes, now);
}

gw_time gw_neighbours_deadline(const struct gw_neighbours *own)
{
    gw_time asks_at = gw_neighbours_asks_at(own);
    return gw_deadline_before(asks_at, own->look_at) ? asks_at : own->look_at;
}

/* Their last word about a session, ours or theirs. */
static void detached(struct gw_neighbours *own, const struct gw_sock_addr *from,
                     const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now)
{
    struct gw_session *session = gw_neighbours_find_session(own, from, msg->session);
    struct gw_dial *dial = session ? NULL : gw_neighbours_find_dial(own, from, msg->session);
    if (!session && !dial)
        return;
    if (!gw_key_is_genuine(session ? session->key : own->cfg.keys, bytes)) {
        own->stats.forged++;
    } else if (dial) {
        gw_neighbours_dial_ended(own, dial, now);
    } else if (session->state == GW_SESSION_UP) {
        gw_neighbours_post(own, GW_NEIGHBOUR_DOWN, (uint16_t)session->rx_cookie);
        session->state = GW_SESSION_ENDED;
    } else {
        own->stats.stale++;
    }
}

/* Of another version all that counts is the step, the session, and the version itself. */
static uint32_t other_version(struct gw_neighbours *own, const struct gw_sock_addr *from,
                              const uint8_t *bytes, uint32_t length, uint8_t *answer, gw_time now)
{
    struct gw_attach_msg msg = {.entropies = 1, .mtu = 1, .reason = GW_ATTACH_VERSION};
    enum gw_attach_step step = gw_attach_step_of(bytes);
    gw_attach_session_of(bytes, msg.session);
    msg.job = gw_attach_version(bytes);
    own->stats.malformed++;
    if (step == GW_ATTACH_ASK && own->cfg.accepts) {
        gw_neighbours_write_refusal(own, &msg, NULL, GW_ATTACH_VERSION, answer);
        return length < GW_ATTACH_SIZE ? length : GW_ATTACH_SIZE; /* as long as they know */
    }
    if (step == GW_ATTACH_REFUSE)
        gw_neighbours_refused_version(own, from, &msg, now);
    return 0;
}

uint32_t gw_neighbours_input(struct gw_neighbours *own, const struct gw_sock_addr *from,
                             const uint8_t *bytes, uint32_t length, uint8_t answer[GW_ATTACH_SIZE],
                             gw_time now)
{
    struct gw_attach_msg msg;
    int code = gw_attach_decode(bytes, length, &msg);
    if (!gw_neighbours_has_room(own)) {
        own->stats.no_room++; /* the message is dropped; everything here is said again */
        return 0;
    }
    if (code == GW_ERR_VERSION)
        return other_version(own, from, bytes, length, answer, now);
    if (code) {
        own->stats.malformed++;
        return 0;
    }
    switch ((enum gw_attach_step)msg.step) {
    case GW_ATTACH_ASK:
        return gw_neighbours_asked(own, from, bytes, &msg, answer, now);
    case GW_ATTACH_CHALLENGE:
        return gw_neighbours_challenged(own, from, &msg, answer, now);
    case GW_ATTACH_ACCEPT:
        gw_neighbours_accepted(own, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_REFUSE:
        gw_neighbours_refused(own, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_DETACH:
        detached(own, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_PROBE:
        gw_neighbours_probed(own, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_STEPS:
        break;
    }
    return 0;
}

bool gw_neighbours_farewell(struct gw_neighbours *own, uint16_t peer, struct gw_sock_addr *to,
                            uint8_t bytes[GW_ATTACH_SIZE])
{
    const struct gw_session *session = &own->sessions[peer];
    bool has_session = peer < own->cfg.peers_max &&
                       (session->state == GW_SESSION_UP || session->state == GW_SESSION_TRYING);
    if (!has_session)
        return false;
    struct gw_attach_msg msg = {.step = GW_ATTACH_DETACH};
    gw_neighbours_write(own, session, &msg, bytes);
    *to = session->addr;
    return true;
}

bool gw_neighbours_view(const struct gw_neighbours *own, uint16_t peer,
                        struct gw_neighbour_event *view)
{
    if (peer >= own->cfg.peers_max || own->sessions[peer].state != GW_SESSION_UP)
        return false;
    *view = event_of(own, GW_NEIGHBOUR_UP, peer);
    return true;
}

gw_time gw_neighbours_rtt(const struct gw_neighbours *own, uint16_t peer)
{
    const struct gw_session *session = &own->sessions[peer];
    return session->dial < 0 ? session->said.rtt * GW_ATTACH_RTT_UNIT
                             : gw_rtt_meter_least(&session->rtt);
}

static struct gw_neighbour_way way_of(const struct gw_attach_way *way)
{
    return (struct gw_neighbour_way){.rtt = way->rtt * GW_ATTACH_RTT_UNIT,
                                     .rate_bps = way->rate_kbps * UINT64_C(1000)};
}

struct gw_neighbour_way gw_neighbours_way(const struct gw_neighbours *own)
{
    return way_of(&own->way);
}

struct gw_neighbour_way gw_neighbours_way_of(const struct gw_neighbours *own, uint16_t peer)
{
    return way_of(&own->sessions[peer].said.way);
}

const struct gw_key *gw_neighbours_key(const struct gw_neighbours *own, uint16_t peer)
{
    return own->sessions[peer].key;
}

uint64_t gw_neighbours_cookie(const struct gw_neighbours *own, uint16_t peer)
{
    return own->sessions[peer].rx_cookie;
}

const struct gw_neighbours_stats *gw_neighbours_stats(const struct gw_neighbours *own)
{
    return &own->stats;
}

const char *gw_attach_reason_text(enum gw_attach_reason reason)
{
    static const char *const texts[GW_ATTACH_REASONS] = {
        [GW_ATTACH_OK] = "no reason",
        [GW_ATTACH_VERSION] = "it speaks another version of the protocol",
        [GW_ATTACH_KEY] = "it does not know our key",
        [GW_ATTACH_ROOM] = "it has no room for another neighbour",
        [GW_ATTACH_ENDED] = "the session is over",
        [GW_ATTACH_MTU] = "our packets are too long for it",
        [GW_ATTACH_JOB] =
            "it has no room for the job: it serves others, or the same with other threads",
        [GW_ATTACH_TAKEN] = "our address is taken",
        [GW_ATTACH_SELF] = "it is ourselves",
        [GW_ATTACH_AUTHENTICATION] = "one of us authenticates packets, the other does not",
        [GW_ATTACH_CLOSING] = "it is closing",
        [GW_ATTACH_NOTICE] = "it announces the bursts of the job differently",
        [GW_ATTACH_RANK] = "another process has our rank of the job",
        [GW_ATTACH_ROLE] = "our key is not one of its switch_keys",
        [GW_ATTACH_WORLD] = "a job of that name is there with another number of workers",
        [GW_ATTACH_FOREIGN] = "the job is one of another key",
        [GW_ATTACH_ENCRYPTION] = "one of us encrypts packets, the other does not",
        [GW_ATTACH_OVER] = "the job that it was a rank of has ended",
        [GW_ATTACH_REPLACED] = "the job that it was a rank of has lost another rank",
    };
    return reason < GW_ATTACH_REASONS ? texts[reason] : "for a reason that we do not know";
}
