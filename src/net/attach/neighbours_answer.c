/*
 * Sessions of those who have dialled us: their questions, what we answer, and the groups that we
 * tell them. Nothing is stored for a neighbour before it has proved its address and its key. See
 * neighbours.h.
 */
#include <string.h>

#include "net/attach/neighbours_impl.h"

#define PERIOD (60 * GW_S) /* a proof is good in its own and the next one */

/* A refusal repeats what was asked. With a key that both know it is signed. */
uint32_t gw_neighbours_write_refusal(struct gw_neighbours *own, const struct gw_attach_msg *asked,
                                     const struct gw_key *key, enum gw_attach_reason reason,
                                     uint8_t *answer)
{
    struct gw_attach_msg msg = *asked;
    msg.step = GW_ATTACH_REFUSE;
    msg.reason = (uint8_t)reason;
    gw_attach_encode(&msg, answer);
    if (key)
        gw_key_sign(key, answer);
    if (key && reason == GW_ATTACH_ROOM)
        own->no_place[key - own->cfg.keys]++;
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

struct gw_session *gw_neighbours_find_session(const struct gw_neighbours *own,
                                              const struct gw_sock_addr *from, const uint8_t *id)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        struct gw_session *session = &own->sessions[i];
        bool is_theirs = session->dial < 0 &&
                         (session->state == GW_SESSION_UP || session->state == GW_SESSION_ENDED);
        if (is_theirs && memcmp(session->id, id, GW_ATTACH_NONCE_SIZE) == 0 &&
            gw_sock_addr_is_same(&session->addr, from))
            return session;
    }
    return NULL;
}

/* Whether the proof is that of this period or of the one before. In any case the message then has
 * the proof that is wanted from now on: a session that beats needs no challenge. */
static bool is_proven(const struct gw_neighbours *own, const struct gw_sock_addr *from,
                      struct gw_attach_msg *msg, gw_time now)
{
    uint8_t proof[GW_ATTACH_NONCE_SIZE], earlier[GW_ATTACH_NONCE_SIZE];
    uint64_t period = 1 + now / PERIOD;
    gw_key_proof(own->secret, from, msg->session, period, proof);
    bool is_good = gw_key_is_same(proof, msg->proof, sizeof(proof));
    if (!is_good) {
        gw_key_proof(own->secret, from, msg->session, period - 1, earlier);
        is_good = gw_key_is_same(earlier, msg->proof, sizeof(earlier));
    }
    memcpy(msg->proof, proof, sizeof(proof));
    return is_good;
}

/* Ends one of theirs; there is room for the event. */
static void end(struct gw_neighbours *own, struct gw_session *session)
{
    gw_neighbours_post(own, GW_NEIGHBOUR_DOWN, (uint16_t)session->rx_cookie);
    session->state = GW_SESSION_ENDED;
}

/* Whether who asks for a session has given this one up: he lives again, or has had no answer for so
 * long that he begins another for the same. */
static bool is_given_up(const struct gw_session *session, const struct gw_attach_msg *msg)
{
    const struct gw_attach_msg *said = &session->said;
    bool is_same = said->address == msg->address && said->job == msg->job &&
                   said->rank == msg->rank && said->role == msg->role &&
                   !((said->flags ^ msg->flags) & (GW_ATTACH_DIRECT | GW_ATTACH_TABLE));
    return said->life != msg->life || is_same;
}

/*
 * Ends the sessions that the process at this address, which has the same key, has given up. False:
 * not all of them yet, since the caller has too many events to hear of.
 */
static bool end_earlier(struct gw_neighbours *own, const struct gw_sock_addr *from,
                        const struct gw_key *key, const struct gw_attach_msg *msg)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        struct gw_session *session = &own->sessions[i];
        if (session->dial >= 0 || session->state != GW_SESSION_UP || session->key != key ||
            !is_given_up(session, msg) || !gw_sock_addr_is_same(&session->addr, from))
            continue;
        if (!gw_neighbours_has_room(own))
            return false;
        end(own, session);
    }
    return gw_neighbours_has_room(own);
}

/* Whether the address is that of a neighbour who has another key. */
static bool is_others(const struct gw_neighbours *own, const struct gw_key *key, uint32_t address)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        const struct gw_session *session = &own->sessions[i];
        if (session->state == GW_SESSION_UP && session->key != key &&
            session->said.address == address)
            return true;
    }
    return false;
}

/* Why we do not want who asks this and has that key, or GW_ATTACH_OK. */
static enum gw_attach_reason why_not(const struct gw_neighbours *own, const struct gw_key *key,
                                     const struct gw_attach_msg *msg)
{
    if (msg->job && !gw_key_has_job(key, msg->job))
        return GW_ATTACH_FOREIGN;
    if (msg->mtu > own->cfg.mtu)
        return GW_ATTACH_MTU;
    if (msg->address == own->cfg.address) /* our own question has come back, too */
        return GW_ATTACH_SELF;
    if (((msg->flags & GW_ATTACH_ENCRYPTED) != 0) != own->cfg.encrypts)
        return GW_ATTACH_ENCRYPTION;
    if (((msg->flags & GW_ATTACH_AUTHENTICATED) != 0) != own->cfg.authenticates)
        return GW_ATTACH_AUTHENTICATION;
    return GW_ATTACH_OK;
}

/* Whether another session with the key leaves all other keys their part (core/tenants.h). */
static bool leaves_room(const struct gw_neighbours *own, const struct gw_key *key)
{
    uint32_t held[GW_NEIGHBOURS_KEYS_MAX] = {0};
    uint32_t left = own->cfg.places;
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        const struct gw_session *session = &own->sessions[i];
        if (session->dial >= 0 || session->state != GW_SESSION_UP)
            continue;
        held[session->key - own->cfg.keys]++;
        left--;
    }
    return gw_tenants_have_place(held, own->cfg.key_count, (uint32_t)(key - own->cfg.keys),
                                 own->cfg.places, left);
}

void gw_neighbours_use(const struct gw_neighbours *own, uint32_t who, struct gw_tenant_use *use)
{
    for (uint32_t i = 0; i < own->cfg.peers_max; i++) {
        const struct gw_session *session = &own->sessions[i];
        use->sessions += session->dial < 0 && session->state == GW_SESSION_UP &&
                         session->key == &own->cfg.keys[who];
    }
    use->sessions_refused += own->no_place[who];
}

/* Begins a session of theirs; NULL: there is no number for it, at least until events are polled. */
static struct gw_session *begin(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                const struct gw_key *key, const struct gw_attach_msg *msg,
                                gw_time now)
{
    bool may = end_earlier(own, from, key, msg) && leaves_room(own, key);
    int peer = may ? gw_neighbours_claim(own, now) : -1;
    if (peer < 0)
        return NULL;
    struct gw_session *session = &own->sessions[peer];
    memcpy(session->id, msg->session, sizeof(session->id));
    session->state = GW_SESSION_UP;
    session->dial = -1;
    session->key = key;
    session->addr = *from;
    session->said = *msg;
    session->said.flags &= (uint8_t)~GW_ATTACH_HEARS; /* of a group that an earlier life told */
    gw_neighbours_post(own, GW_NEIGHBOUR_UP, (uint16_t)peer);
    if (own->look_at == GW_TIME_NEVER)
        own->look_at = gw_time_add(now, own->cfg.silence);
    return session;
}

/* A switch is asked about its own way, a host about those of its job. */
static uint32_t write_acceptance(struct gw_neighbours *own, const struct gw_session *session,
                                 const struct gw_attach_msg *asked, uint8_t *answer, gw_time now)
{
    bool is_host = own->cfg.role == GW_ATTACH_HOST;
    struct gw_attach_msg msg = {
        .step = GW_ATTACH_ACCEPT,
        .group = session->group,
        .number = asked->number,
        .way.silence = gw_neighbours_silence_of_job(own, is_host ? session->said.job : 0, now),
    };
    memcpy(msg.proof, asked->proof, sizeof(msg.proof));
    gw_neighbours_write(own, session, &msg, answer);
    return GW_ATTACH_SIZE;
}

/* Whether the question was asked after all others that counted: it may wrap, in 27 years of beats.
 */
static bool is_newer(const struct gw_session *session, const struct gw_attach_msg *msg)
{
    return (int32_t)(msg->number - session->number) > 0;
}

/* Whether they have a session of this number that we do not have, or no longer with that cookie:
 * it is over, since a number is never used with two cookies. */
static bool is_forgotten(const struct gw_session *session, const struct gw_attach_msg *msg)
{
    return msg->told_cookie != 0 && (!session || session->rx_cookie != msg->told_cookie);
}

/* Keeps what a question tells of the way to who asks, and of our group. */
static void take_news(struct gw_neighbours *own, struct gw_session *session,
                      const struct gw_attach_msg *msg, gw_time now)
{
    gw_neighbours_heard(own, session, now);
    session->number = msg->number;
    session->said.way = msg->way;
    session->said.rtt = msg->rtt;
    if (msg->way.silence.port)
        gw_neighbours_heard_of_silence(own, now);
    if (session->group.port && (session->said.flags ^ msg->flags) & GW_ATTACH_HEARS) {
        session->said.flags ^= GW_ATTACH_HEARS;
        gw_neighbours_post(own, GW_NEIGHBOUR_HEARS, (uint16_t)session->rx_cookie);
    }
}

/* What comes before the answer is in the order of what it costs us. */
uint32_t gw_neighbours_asked(struct gw_neighbours *own, const struct gw_sock_addr *from,
                             const uint8_t *bytes, struct gw_attach_msg *msg, uint8_t *answer,
                             gw_time now)
{
    const struct gw_key *key = find_key(own, msg->key_id);
    if (!own->cfg.accepts)
        return own->stats.stale++, 0;
    if (!key)
        return gw_neighbours_write_refusal(own, msg, NULL, GW_ATTACH_KEY, answer);
    if (!is_proven(own, from, msg, now))
        return challenge(msg, answer);
    if (!gw_key_is_genuine(key, bytes))
        return own->stats.forged++, 0;
    enum gw_attach_reason reason = why_not(own, key, msg);
    if (reason != GW_ATTACH_OK)
        return gw_neighbours_write_refusal(own, msg, key, reason, answer);
    struct gw_session *session = gw_neighbours_find_session(own, from, msg->session);
    if (session && session->key != key)
        return own->stats.forged++, 0; /* who can see it, and has another key */
    if (session && session->state == GW_SESSION_UP && !is_newer(session, msg))
        return own->stats.stale++, 0;
    if (session && session->state == GW_SESSION_UP && is_forgotten(session, msg))
        end(own, session);
    if (is_forgotten(session, msg) || (session && session->state == GW_SESSION_ENDED))
        return gw_neighbours_write_refusal(own, msg, key, GW_ATTACH_ENDED, answer);
    if (!session && is_others(own, key, msg->address))
        return gw_neighbours_write_refusal(own, msg, key, GW_ATTACH_TAKEN, answer);
    if (!session)
        session = begin(own, from, key, msg, now);
    if (!session && own->waiting.count > 0)
        return own->stats.no_room++, 0;
    if (!session)
        return gw_neighbours_write_refusal(own, msg, key, GW_ATTACH_ROOM, answer);
    take_news(own, session, msg, now);
    return write_acceptance(own, session, msg, answer, now);
}

void gw_neighbours_refuse(struct gw_neighbours *own, uint16_t peer, enum gw_attach_reason reason,
                          struct gw_sock_addr *to, uint8_t bytes[GW_ATTACH_SIZE])
{
    struct gw_session *session = &own->sessions[peer];
    *to = session->addr;
    gw_neighbours_write_refusal(own, &session->said, session->key, reason, bytes);
    session->state = GW_SESSION_ENDED;
}

void gw_neighbours_set_group(struct gw_neighbours *own, uint16_t peer,
                             const struct gw_attach_group *group)
{
    own->sessions[peer].group = *group;
}

void gw_neighbours_probe(const struct gw_neighbours *own, uint16_t peer,
                         uint8_t bytes[GW_ATTACH_SIZE])
{
    const struct gw_session *session = &own->sessions[peer];
    struct gw_session group = {.key = session->key, .rx_cookie = session->group.cookie};
    struct gw_attach_msg msg = {.step = GW_ATTACH_PROBE};
    gw_neighbours_write(own, &group, &msg, bytes);
}
