/* Sessions with neighbours; see neighbours.h. */
#include "net/attach/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    EVENTS_MAX = 256,
    TRIES_FAST = 10, /* questions in a row at the fast pace */
    DEAF_AFTER = 3,  /* beats without a probe */
};

#define PACE_FAST (20 * GW_MS)
#define MISTRUST  (30 * GW_S)
#define PERIOD    (60 * GW_S) /* a proof is good within one */

enum session_state {
    SESSION_FREE,   /* a proven question, or our dial, moves it on */
    SESSION_TRYING, /* ours: ACCEPT moves it on */
    SESSION_UP,     /* silence, DETACH or our refusal moves it on */
    SESSION_ENDED,  /* theirs: remembered until its proof is worth nothing */
};

struct session {
    uint8_t state; /* enum session_state */
    int dial;      /* -1: theirs */
    uint8_t id[GW_ATTACH_NONCE_SIZE];
    uint64_t rx_cookie;
    const struct gw_key *key;
    gw_time heard_at; /* or since when it is tried */
    bool is_probed;   /* ours: a probe of their group has come, */
    gw_time probed_at;
    gw_time hears_since;          /* and since then */
    gw_time trusts_at;            /* no probe counts before */
    struct gw_attach_group group; /* theirs: what we tell them */
    struct gw_attach_msg said;
    struct gw_sock_addr addr;
};

struct dial {
    char name[GW_NEIGHBOURS_NAME_MAX];
    struct gw_sock_addr to;
    struct gw_greeting greeting;
    uint8_t proof[GW_ATTACH_NONCE_SIZE];
    uint16_t peer; /* its session */
    bool is_over;  /* refused */
    uint32_t tries;
    gw_time next_at;
};

struct gw_neighbours {
    struct gw_neighbours_cfg cfg;
    struct session *sessions; /* cfg.peers_max */
    struct dial dials[GW_NEIGHBOURS_DIALS_MAX];
    int dial_count;
    uint8_t secret[32];
    uint32_t life;   /* random: tells us from one that was here before a restart */
    gw_time look_at; /* when silence is looked for next */
    struct gw_neighbour_event events[EVENTS_MAX];
    uint32_t event_head, event_count;
    struct gw_neighbours_stats stats;
};

struct gw_neighbours *gw_neighbours_open(const struct gw_neighbours_cfg *cfg)
{
    struct gw_neighbours *own = calloc(1, sizeof(*own));
    if (!own)
        return NULL;
    own->cfg = *cfg;
    own->look_at = GW_TIME_NEVER;
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

static bool has_event_room(const struct gw_neighbours *own)
{
    return own->event_count < EVENTS_MAX;
}

static struct gw_neighbour_event event_of(const struct gw_neighbours *own,
                                          enum gw_neighbour_event_kind kind, uint16_t peer)
{
    const struct session *session = &own->sessions[peer];
    return (struct gw_neighbour_event){.kind = kind,
                                       .peer = peer,
                                       .dial = session->dial,
                                       .said = session->said,
                                       .heard_at = session->heard_at,
                                       .addr = session->addr};
}

static void post(struct gw_neighbours *own, enum gw_neighbour_event_kind kind, uint16_t peer)
{
    uint32_t at = (own->event_head + own->event_count++) % EVENTS_MAX;
    own->events[at] = event_of(own, kind, peer);
}

bool gw_neighbours_poll(struct gw_neighbours *own, struct gw_neighbour_event *event)
{
    if (own->event_count == 0)
        return false;
    *event = own->events[own->event_head];
    own->event_head = (own->event_head + 1) % EVENTS_MAX;
    own->event_count--;
    return true;
}

/* Makes all proofs worthless: then nobody can replay the sessions that have ended. */
static void forget_ended(struct gw_neighbours *own)
{
    gw_key_random(own->secret, sizeof(own->secret));
    for (uint32_t i = 0; i < own->cfg.peers_max; i++)
        if (own->sessions[i].state == SESSION_ENDED)
            own->sessions[i].state = SESSION_FREE;
}

static int find_free(const struct gw_neighbours *own)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++)
        if (own->sessions[i].state == SESSION_FREE)
            return (int)i;
    return -1;
}

/*
 * A free number for a session, with a fresh cookie; -1: none is free. What the caller has still to
 * hear of keeps its number.
 */
static int claim(struct gw_neighbours *own, gw_time now)
{
    int peer = find_free(own);
    if (peer < 0 && own->event_count == 0) {
        forget_ended(own);
        peer = find_free(own);
    }
    if (peer < 0)
        return -1;
    struct session *session = &own->sessions[peer];
    memset(session, 0, sizeof(*session));
    gw_key_random(&session->rx_cookie, sizeof(session->rx_cookie));
    session->rx_cookie = (session->rx_cookie & ~UINT64_C(0xffff)) | (uint64_t)peer;
    session->heard_at = now;
    return peer;
}

/* Begins a session of a dial: a new number that nobody has seen. */
static bool begin(struct gw_neighbours *own, int number, gw_time now)
{
    struct dial *dial = &own->dials[number];
    int peer = claim(own, now);
    if (peer < 0)
        return false;
    struct session *session = &own->sessions[peer];
    session->state = SESSION_TRYING;
    session->dial = number;
    session->key = own->cfg.keys;
    session->addr = dial->to;
    gw_key_random(session->id, sizeof(session->id));
    memset(dial->proof, 0, sizeof(dial->proof));
    dial->peer = (uint16_t)peer;
    dial->tries = 0;
    dial->next_at = now;
    return true;
}

int gw_neighbours_dial(struct gw_neighbours *own, const struct gw_sock_addr *to, const char *name,
                       const struct gw_greeting *greeting, gw_time now)
{
    if (own->dial_count == GW_NEIGHBOURS_DIALS_MAX)
        return GW_ERR_NO_ROOM;
    struct dial *dial = &own->dials[own->dial_count];
    *dial = (struct dial){.to = *to, .greeting = *greeting};
    snprintf(dial->name, sizeof(dial->name), "%s", name);
    if (!begin(own, own->dial_count, now))
        return GW_ERR_NO_ROOM;
    own->look_at = now;
    return own->dial_count++;
}

const char *gw_neighbours_dial_name(const struct gw_neighbours *own, int dial)
{
    return own->dials[dial].name;
}

bool gw_neighbours_is_up(const struct gw_neighbours *own, int dial)
{
    return own->sessions[own->dials[dial].peer].state == SESSION_UP;
}

/* A message of ours about a session. */
static void write_message(const struct gw_neighbours *own, const struct session *session,
                          struct gw_attach_msg *msg, uint8_t *bytes)
{
    memcpy(msg->session, session->id, sizeof(msg->session));
    msg->cookie = session->rx_cookie;
    msg->key_id = session->key->id;
    msg->address = own->cfg.address;
    msg->role = own->cfg.role;
    msg->entropies = own->cfg.entropies;
    msg->mtu = own->cfg.mtu;
    gw_attach_encode(msg, bytes);
    gw_key_sign(session->key, bytes);
}

/* Whether what our neighbour sends to its group arrives here. */
static bool hears_group(const struct gw_neighbours *own, const struct session *session, gw_time now)
{
    return session->is_probed && now - session->probed_at < DEAF_AFTER * own->cfg.beat;
}

static void ask(struct gw_neighbours *own, struct dial *dial, uint8_t *bytes, gw_time now)
{
    const struct session *session = &own->sessions[dial->peer];
    struct gw_attach_msg msg = {
        .step = GW_ATTACH_ASK,
        .life = own->life,
        .job = dial->greeting.job,
        .world = dial->greeting.world,
        .rank = dial->greeting.rank,
        .flags = (uint8_t)((dial->greeting.is_direct ? GW_ATTACH_DIRECT : 0) |
                           (own->cfg.authenticates ? GW_ATTACH_AUTHENTICATED : 0) |
                           (hears_group(own, session, now) ? GW_ATTACH_HEARS : 0)),
    };
    memcpy(msg.proof, dial->proof, sizeof(msg.proof));
    write_message(own, session, &msg, bytes);
    bool is_fast = session->state == SESSION_TRYING && dial->tries++ < TRIES_FAST;
    dial->next_at = gw_time_add(now, is_fast ? PACE_FAST : own->cfg.beat);
}

/* Ends the sessions that have been silent for too long. */
static void look_for_silence(struct gw_neighbours *own, gw_time now)
{
    own->look_at = gw_time_add(now, own->cfg.silence / 4);
    for (uint32_t i = 0; i < own->cfg.peers_max && has_event_room(own); i++) {
        struct session *session = &own->sessions[i];
        if (session->state != SESSION_UP || now - session->heard_at < own->cfg.silence)
            continue;
        post(own, GW_NEIGHBOUR_DOWN, (uint16_t)i);
        session->state = session->dial < 0 ? SESSION_ENDED : SESSION_FREE;
        if (session->dial >= 0)
            own->dials[session->dial].is_over = !begin(own, session->dial, now);
    }
}

bool gw_neighbours_output(struct gw_neighbours *own, struct gw_sock_addr *to,
                          uint8_t bytes[GW_ATTACH_SIZE], gw_time now)
{
    if (own->look_at != GW_TIME_NEVER && !gw_time_before(now, own->look_at))
        look_for_silence(own, now);
    for (int i = 0; i < own->dial_count; i++) {
        struct dial *dial = &own->dials[i];
        if (dial->is_over || gw_time_before(now, dial->next_at))
            continue;
        *to = dial->to;
        ask(own, dial, bytes, now);
        return true;
    }
    return false;
}

gw_time gw_neighbours_deadline(const struct gw_neighbours *own)
{
    gw_time at = own->look_at;
    for (int i = 0; i < own->dial_count; i++)
        if (!own->dials[i].is_over && gw_deadline_before(own->dials[i].next_at, at))
            at = own->dials[i].next_at;
    return at;
}

/* A refusal repeats what was asked. With a key that both know it is signed. */
static uint32_t refuse(struct gw_neighbours *own, const struct gw_attach_msg *asked,
                       const struct gw_key *key, enum gw_attach_reason reason, uint8_t *answer)
{
    struct gw_attach_msg msg = *asked;
    msg.step = GW_ATTACH_REFUSE;
    msg.reason = (uint8_t)reason;
    gw_attach_encode(&msg, answer);
    if (key)
        gw_key_sign(key, answer);
    own->stats.refused++;
    return GW_ATTACH_SIZE;
}

/* What must come back; a false one costs another round, so it needs no code. */
static uint32_t challenge(const struct gw_attach_msg *asked, uint8_t *answer)
{
    struct gw_attach_msg msg = *asked;
    msg.step = GW_ATTACH_CHALLENGE;
    gw_attach_encode(&msg, answer);
    return GW_ATTACH_SIZE;
}

static const struct gw_key *find_key(const struct gw_neighbours *own, uint64_t id)
{
    for (uint32_t i = 0; i < own->cfg.key_count; i++)
        if (own->cfg.keys[i].id == id)
            return &own->cfg.keys[i];
    return NULL;
}

/* Their session with this number from this address; NULL: there is none. */
static struct session *find_session(const struct gw_neighbours *own,
                                    const struct gw_sock_addr *from, const uint8_t *id)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        struct session *session = &own->sessions[i];
        bool is_theirs =
            session->dial < 0 && (session->state == SESSION_UP || session->state == SESSION_ENDED);
        if (is_theirs && memcmp(session->id, id, GW_ATTACH_NONCE_SIZE) == 0 &&
            gw_sock_is_same_host(&session->addr, from) &&
            gw_sock_port(&session->addr) == gw_sock_port(from))
            return session;
    }
    return NULL;
}

/* False: the message now has the proof that is wanted. */
static bool is_proven(const struct gw_neighbours *own, const struct gw_sock_addr *from,
                      struct gw_attach_msg *msg, gw_time now)
{
    uint8_t proof[GW_ATTACH_NONCE_SIZE];
    gw_key_proof(own->secret, from, msg->session, now / PERIOD, proof);
    if (memcmp(proof, msg->proof, sizeof(proof)) == 0)
        return true;
    memcpy(msg->proof, proof, sizeof(proof));
    return false;
}

/*
 * Ends the sessions of an earlier life of the process at this address. False: not all of them yet,
 * since the caller has too many events to hear of.
 */
static bool end_earlier(struct gw_neighbours *own, const struct gw_sock_addr *from, uint32_t life)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        struct session *session = &own->sessions[i];
        if (session->dial >= 0 || session->state != SESSION_UP || session->said.life == life ||
            !gw_sock_is_same_host(&session->addr, from) ||
            gw_sock_port(&session->addr) != gw_sock_port(from))
            continue;
        if (!has_event_room(own))
            return false;
        post(own, GW_NEIGHBOUR_DOWN, (uint16_t)i);
        session->state = SESSION_ENDED;
    }
    return has_event_room(own);
}

/* A question; what comes before the answer is in the order of what it costs us. */
static uint32_t asked(struct gw_neighbours *own, const struct gw_sock_addr *from,
                      const uint8_t *bytes, struct gw_attach_msg *msg, uint8_t *answer, gw_time now)
{
    const struct gw_key *key = find_key(own, msg->key_id);
    if (!own->cfg.accepts)
        return own->stats.stale++, 0;
    if (!key)
        return refuse(own, msg, NULL, GW_ATTACH_KEY, answer);
    if (!is_proven(own, from, msg, now))
        return challenge(msg, answer);
    if (!gw_key_is_genuine(key, bytes))
        return own->stats.forged++, 0;
    if (msg->mtu > own->cfg.mtu)
        return refuse(own, msg, key, GW_ATTACH_MTU, answer);
    if (msg->address == own->cfg.address) /* our own question has come back, too */
        return refuse(own, msg, key, GW_ATTACH_SELF, answer);
    if (((msg->flags & GW_ATTACH_AUTHENTICATED) != 0) != own->cfg.authenticates)
        return refuse(own, msg, key, GW_ATTACH_AUTHENTICATION, answer);
    struct session *session = find_session(own, from, msg->session);
    if (session && session->state == SESSION_ENDED)
        return refuse(own, msg, key, GW_ATTACH_ENDED, answer);
    if (!session) {
        if (!end_earlier(own, from, msg->life))
            return own->stats.no_room++, 0;
        int peer = claim(own, now);
        if (peer < 0 && own->event_count > 0)
            return own->stats.no_room++, 0;
        if (peer < 0)
            return refuse(own, msg, key, GW_ATTACH_ROOM, answer);
        session = &own->sessions[peer];
        memcpy(session->id, msg->session, sizeof(session->id));
        session->state = SESSION_UP;
        session->dial = -1;
        session->key = key;
        session->addr = *from;
        session->said = *msg;
        session->said.flags &= (uint8_t)~GW_ATTACH_HEARS; /* of a group that an earlier life told */
        post(own, GW_NEIGHBOUR_UP, (uint16_t)peer);
        if (own->look_at == GW_TIME_NEVER)
            own->look_at = gw_time_add(now, own->cfg.silence);
    }
    session->heard_at = now;
    if (session->group.port && (session->said.flags ^ msg->flags) & GW_ATTACH_HEARS) {
        session->said.flags ^= GW_ATTACH_HEARS;
        post(own, GW_NEIGHBOUR_HEARS, (uint16_t)session->rx_cookie);
    }
    struct gw_attach_msg accept = {.step = GW_ATTACH_ACCEPT, .group = session->group};
    memcpy(accept.proof, msg->proof, sizeof(accept.proof));
    write_message(own, session, &accept, answer);
    return GW_ATTACH_SIZE;
}

/* The dial whose session a message is about; NULL: none. */
static struct dial *find_dial(struct gw_neighbours *own, const struct gw_sock_addr *from,
                              const uint8_t *id)
{
    for (int i = 0; i < own->dial_count; i++) {
        struct dial *dial = &own->dials[i];
        if (!dial->is_over && gw_sock_is_same_host(&dial->to, from) &&
            gw_sock_port(&dial->to) == gw_sock_port(from) &&
            memcmp(own->sessions[dial->peer].id, id, GW_ATTACH_NONCE_SIZE) == 0)
            return dial;
    }
    own->stats.stale++;
    return NULL;
}

/* Gives the session of a dial up, and tries with another. */
static void begin_again(struct gw_neighbours *own, struct dial *dial, gw_time pace, gw_time now)
{
    struct session *session = &own->sessions[dial->peer];
    if (session->state == SESSION_UP)
        post(own, GW_NEIGHBOUR_DOWN, dial->peer);
    session->state = SESSION_FREE;
    dial->is_over = !begin(own, (int)(dial - own->dials), now);
    dial->next_at = gw_time_add(now, pace);
}

static void accepted(struct gw_neighbours *own, struct dial *dial, const struct gw_attach_msg *msg,
                     gw_time now)
{
    struct session *session = &own->sessions[dial->peer];
    bool is_new = session->state != SESSION_UP || session->said.cookie != msg->cookie;
    if (memcmp(dial->proof, msg->proof, sizeof(msg->proof)) != 0) {
        own->stats.stale++; /* perhaps from before a restart */
        return;
    }
    session->heard_at = now;
    if (!is_new) {
        if (!gw_attach_is_same_group(&session->said.group, &msg->group)) {
            session->said.group = msg->group;
            session->is_probed = false;
            session->trusts_at = now;
            post(own, GW_NEIGHBOUR_GROUP, dial->peer);
        }
        return;
    }
    session->state = SESSION_UP;
    session->said = *msg;
    session->is_probed = false;
    session->trusts_at = now;
    post(own, GW_NEIGHBOUR_UP, dial->peer);
    dial->next_at = gw_time_add(now, own->cfg.beat);
}

/*
 * Who does not know our key cannot sign: that refusal counts only before the session is up. Later a
 * neighbour that has lost the key is silent, and then refuses the next session.
 */
static bool is_refusal(const struct gw_neighbours *own, const struct dial *dial,
                       const uint8_t *bytes, const struct gw_attach_msg *msg)
{
    const struct gw_key *key = own->cfg.keys;
    if (msg->reason == GW_ATTACH_KEY)
        return own->sessions[dial->peer].state == SESSION_TRYING && msg->key_id == key->id;
    return msg->reason != GW_ATTACH_VERSION && gw_key_is_genuine(key, bytes);
}

static void refused(struct gw_neighbours *own, struct dial *dial, const struct gw_attach_msg *msg,
                    gw_time now)
{
    bool is_taken = msg->reason == GW_ATTACH_TAKEN;
    if (msg->reason == GW_ATTACH_ENDED || msg->reason == GW_ATTACH_CLOSING || is_taken) {
        begin_again(own, dial, is_taken ? own->cfg.beat : PACE_FAST, now);
        return;
    }
    own->sessions[dial->peer].said = *msg;
    post(own, GW_NEIGHBOUR_REFUSED, dial->peer);
    own->sessions[dial->peer].state = SESSION_FREE;
    dial->is_over = true;
}

/* Their last word about a session, ours or theirs. */
static void detached(struct gw_neighbours *own, const struct gw_sock_addr *from,
                     const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now)
{
    struct session *session = find_session(own, from, msg->session);
    struct dial *dial = session ? NULL : find_dial(own, from, msg->session);
    if (!session && !dial)
        return;
    if (!gw_key_is_genuine(session ? session->key : own->cfg.keys, bytes)) {
        own->stats.forged++;
    } else if (dial) {
        begin_again(own, dial, PACE_FAST, now);
    } else if (session->state == SESSION_UP) {
        post(own, GW_NEIGHBOUR_DOWN, (uint16_t)session->rx_cookie);
        session->state = SESSION_ENDED;
    } else {
        own->stats.stale++;
    }
}

/* A probe of a group that we were told: at the first we say at once that we hear. */
static void probed(struct gw_neighbours *own, const struct gw_sock_addr *from, const uint8_t *bytes,
                   const struct gw_attach_msg *msg, gw_time now)
{
    for (int i = 0; i < own->dial_count; i++) {
        struct dial *dial = &own->dials[i];
        struct session *session = &own->sessions[dial->peer];
        if (dial->is_over || session->state != SESSION_UP || session->said.group.port == 0 ||
            session->said.group.cookie != msg->cookie ||
            !gw_sock_is_same_host(&session->addr, from))
            continue;
        if (!gw_key_is_genuine(session->key, bytes)) {
            own->stats.forged++;
            return;
        }
        if (gw_time_before(now, session->trusts_at))
            return;
        if (!hears_group(own, session, now)) {
            session->hears_since = now;
            dial->next_at = now;
        }
        session->is_probed = true;
        session->probed_at = now;
        return;
    }
    own->stats.stale++;
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
        refuse(own, &msg, NULL, GW_ATTACH_VERSION, answer);
        return length < GW_ATTACH_SIZE ? length : GW_ATTACH_SIZE; /* as long as they know */
    }
    struct dial *dial = step == GW_ATTACH_REFUSE ? find_dial(own, from, msg.session) : NULL;
    if (dial && own->sessions[dial->peer].state == SESSION_TRYING)
        refused(own, dial, &msg, now);
    return 0;
}

uint32_t gw_neighbours_input(struct gw_neighbours *own, const struct gw_sock_addr *from,
                             const uint8_t *bytes, uint32_t length, uint8_t answer[GW_ATTACH_SIZE],
                             gw_time now)
{
    struct gw_attach_msg msg;
    struct dial *dial;
    int code = gw_attach_decode(bytes, length, &msg);
    if (!has_event_room(own)) {
        own->stats.no_room++; /* it is lost; everything here is said again */
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
        return asked(own, from, bytes, &msg, answer, now);
    case GW_ATTACH_CHALLENGE:
        dial = find_dial(own, from, msg.session);
        if (!dial || memcmp(dial->proof, msg.proof, sizeof(msg.proof)) == 0)
            return 0;
        memcpy(dial->proof, msg.proof, sizeof(msg.proof));
        ask(own, dial, answer, now);
        return GW_ATTACH_SIZE;
    case GW_ATTACH_ACCEPT:
        dial = find_dial(own, from, msg.session);
        if (dial && gw_key_is_genuine(own->cfg.keys, bytes))
            accepted(own, dial, &msg, now);
        else
            own->stats.forged += dial != NULL;
        return 0;
    case GW_ATTACH_REFUSE:
        dial = find_dial(own, from, msg.session);
        if (dial && is_refusal(own, dial, bytes, &msg))
            refused(own, dial, &msg, now);
        else
            own->stats.forged += dial != NULL;
        return 0;
    case GW_ATTACH_DETACH:
        detached(own, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_PROBE:
        probed(own, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_STEPS:
        break;
    }
    return 0;
}

void gw_neighbours_refuse(struct gw_neighbours *own, uint16_t peer, enum gw_attach_reason reason,
                          struct gw_sock_addr *to, uint8_t bytes[GW_ATTACH_SIZE])
{
    struct session *session = &own->sessions[peer];
    *to = session->addr;
    refuse(own, &session->said, session->key, reason, bytes);
    session->state = SESSION_ENDED;
}

bool gw_neighbours_farewell(struct gw_neighbours *own, uint16_t peer, struct gw_sock_addr *to,
                            uint8_t bytes[GW_ATTACH_SIZE])
{
    if (peer >= own->cfg.peers_max || own->sessions[peer].state != SESSION_UP)
        return false;
    const struct session *session = &own->sessions[peer];
    struct gw_attach_msg msg = {.step = GW_ATTACH_DETACH};
    write_message(own, session, &msg, bytes);
    *to = session->addr;
    return true;
}

void gw_neighbours_set_group(struct gw_neighbours *own, uint16_t peer,
                             const struct gw_attach_group *group)
{
    own->sessions[peer].group = *group;
}

void gw_neighbours_mistrust_group(struct gw_neighbours *own, uint16_t peer, gw_time now)
{
    struct session *session = &own->sessions[peer];
    if (session->state != SESSION_UP || session->dial < 0 || !hears_group(own, session, now) ||
        now - session->hears_since < 2 * own->cfg.beat)
        return;
    session->is_probed = false;
    session->trusts_at = gw_time_add(now, MISTRUST);
    own->dials[session->dial].next_at = now;
}

void gw_neighbours_probe(const struct gw_neighbours *own, uint16_t peer,
                         uint8_t bytes[GW_ATTACH_SIZE])
{
    const struct session *session = &own->sessions[peer];
    struct session group = {.key = session->key, .rx_cookie = session->group.cookie};
    struct gw_attach_msg msg = {.step = GW_ATTACH_PROBE};
    write_message(own, &group, &msg, bytes);
}

bool gw_neighbours_view(const struct gw_neighbours *own, uint16_t peer,
                        struct gw_neighbour_event *view)
{
    if (peer >= own->cfg.peers_max || own->sessions[peer].state != SESSION_UP)
        return false;
    *view = event_of(own, GW_NEIGHBOUR_UP, peer);
    return true;
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
        [GW_ATTACH_JOB] = "it has no room for the job, or knows it with another number of workers",
        [GW_ATTACH_TAKEN] = "our address is taken",
        [GW_ATTACH_SELF] = "it is ourselves",
        [GW_ATTACH_AUTHENTICATION] = "one of us authenticates packets, the other does not",
        [GW_ATTACH_CLOSING] = "it is closing",
    };
    return reason < GW_ATTACH_REASONS ? texts[reason] : "for a reason that we do not know";
}
