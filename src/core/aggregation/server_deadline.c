/*
 * When the server does without stragglers: fragments of calls with a bound.
 *
 * When nothing new has come for the patience (patience.h), the server asks one worker below each
 * switch for what that holds, since it sees nothing of a fragment that a switch lacks a worker of.
 * When nothing came for the patience after that either, it completes what more than half of the
 * workers have sent. Who is missing then counts as late until it is heard of, and nobody waits for
 * it any more where the books allow it (left_out.h). Instead of a worker that was asked in vain,
 * another one below its switch is asked in the next round.
 *
 * Who is late, is back, or sends one fragment after the other again, a round trip each, is invited
 * to send again at once what it has out and may be lost. So a gap costs a round trip, not one per
 * fragment; and since the server knows who lacks what, nobody else repeats anything.
 *
 * What a call has for sure are its fragments up to the newest that a majority has sent; a minority
 * cannot make the books allow more. After an epoch has begun in the middle of calls, nobody knows
 * what was left out before, so it counts only what no worker can have sent by then.
 *
 * Invariant: a worker that lacks a result can still get it. It has all that is a window before the
 * newest fragment it has sent, and is not left out of one that is more than two windows behind
 * that. So results since three windows before `expected` are enough, and the server keeps them.
 */
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/server_impl.h"

enum {
    PATIENCE_DOUBLINGS_MAX = 6, /* while there is no result */
    CRAWL_MIN = 3,              /* fragments one after the other that mean a gap */
    CRAWL_AGAIN = 32,           /* and mean one again: what was asked for is lost */
};

/* Newest fragment with values of a worker. */
static uint32_t heard_of(const struct gw_deadline *deadline, uint32_t rank)
{
    uint32_t heard = deadline->heard[rank];
    return (int32_t)(deadline->heard_all - heard) > 0 ? deadline->heard_all : heard;
}

/* From a request to the answer: at most the patience, and no less than half of the least. */
static gw_time trip_of(const struct gw_server *server)
{
    gw_time patience = gw_patience_of(&server->deadline.patience);
    gw_time least = server->deadline.patience.least / 2, trip = server->deadline.trip;
    if (trip == 0 || trip > patience)
        return patience;
    return trip > least ? trip : least;
}

static bool is_majority(const struct gw_server *server, const struct gw_rank_set *set)
{
    return 2 * gw_rank_set_count(set) > server->cfg.world;
}

void gw_server_deadline_begin(struct gw_server *server, const struct gw_server_epoch *epoch)
{
    struct gw_deadline *deadline = &server->deadline;
    if (!server->cfg.patience)
        return;
    gw_left_out_clear(&deadline->books);
    gw_rank_set_clear(&deadline->late);
    gw_rank_set_clear(&deadline->silent);
    gw_rank_set_clear(&deadline->was_late);
    deadline->heard_all = epoch->first_seq - 1;
    for (uint32_t rank = 0; rank < server->cfg.world; rank++)
        deadline->heard[rank] = deadline->heard_all, deadline->crawls[rank].count = 0;
    deadline->fresh_from = epoch->first_seq + (epoch->is_fresh ? 0 : server->kept);
    deadline->known = epoch->first_seq - 1;
    deadline->known_key = 0;
    deadline->asked_at = GW_TIME_NEVER;
    deadline->rounds = 0;
    deadline->is_wanted = false;
    gw_rank_set_clear(&deadline->asked);
    deadline->result_at = GW_TIME_NEVER;
}

void gw_server_deadline_restart(struct gw_server *server, bool has_result, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    deadline->since = now;
    deadline->rounds = 0;
    if (has_result)
        deadline->asked_at = GW_TIME_NEVER;
}

/* First fragment of the fragment's call of which it is known who was left out. */
static uint32_t first_of(const struct gw_server *server, const struct gw_fragment *fragment)
{
    uint32_t first = fragment->seq - gw_agg_key_before(fragment->key, fragment->seq);
    return (int32_t)(server->deadline.fresh_from - first) > 0 ? server->deadline.fresh_from : first;
}

/* How many fragments of the fragment's call exist for sure, besides those of unknown books. */
static uint32_t known_of(const struct gw_server *server, const struct gw_fragment *fragment)
{
    const struct gw_deadline *deadline = &server->deadline;
    uint32_t newest = fragment->seq;
    if (deadline->known_key == fragment->key && (int32_t)(deadline->known - newest) > 0) {
        newest = deadline->known;
    } else {
        for (uint32_t i = 1; i < server->positions; i++) {
            const struct gw_fragment *later = gw_server_fragment(server, fragment->seq + i);
            if (later->state == GW_FRAGMENT_EMPTY || later->seq != fragment->seq + i)
                continue;
            if (later->key != fragment->key)
                break; /* the call ends before it */
            if (later->state == GW_FRAGMENT_DONE || is_majority(server, &later->set))
                newest = later->seq;
        }
    }
    uint32_t first = first_of(server, fragment);
    return (int32_t)(newest - first) < 0 ? 0 : newest - first + 1;
}

/* Whether all of them will be able to get the result. */
static bool are_near(const struct gw_server *server, const struct gw_rank_set *missing,
                     uint32_t seq)
{
    const int32_t most = (int32_t)(server->kept - 2 * server->positions);
    for (uint32_t rank = 0; (rank = gw_rank_set_next(missing, rank)) < server->cfg.world; rank++)
        if ((int32_t)(seq - heard_of(&server->deadline, rank)) > most)
            return false;
    return true;
}

/* Whether the fragment has begun, lacks workers, and could do without them. */
static bool is_candidate(const struct gw_server *server, const struct gw_fragment *fragment)
{
    bool is_open = fragment->state == GW_FRAGMENT_SUMMING ||
                   (fragment->state == GW_FRAGMENT_RAW && fragment->raw != GW_FRAGMENT_NO_ROW);
    return is_open && fragment->bound > 0 && is_majority(server, &fragment->set);
}

static void finish_without(struct gw_server *server, struct gw_fragment *fragment,
                           const struct gw_rank_set *missing)
{
    const struct gw_left_out_item item = {
        .key = fragment->key,
        .seq = fragment->seq,
        .known = known_of(server, fragment),
        .bound = fragment->bound,
        .missing = missing,
    };
    const struct gw_fragment *before = gw_server_fragment(server, server->expected - 1);
    if (before->state == GW_FRAGMENT_DONE && before->seq == server->expected - 1)
        gw_left_out_close(&server->deadline.books, server->expected, before->key);
    if (!are_near(server, missing, fragment->seq) ||
        !gw_left_out_add(&server->deadline.books, &item))
        return;
    server->deadline.result_at = GW_TIME_NEVER;
    if (fragment->state == GW_FRAGMENT_RAW)
        gw_server_raw_finish(server, fragment);
    else
        gw_server_finish_sum(server, fragment);
}

static struct gw_rank_set missing_of(const struct gw_server *server,
                                     const struct gw_fragment *fragment)
{
    struct gw_rank_set missing = server->contributors.everybody;
    gw_rank_set_remove(&missing, &fragment->set);
    return missing;
}

/* Completes what a majority has sent; who is missing is late. */
static void decide(struct gw_server *server)
{
    uint32_t first = server->expected;
    for (uint32_t i = 0; i < server->positions; i++) {
        struct gw_fragment *fragment = gw_server_fragment(server, first + i);
        if (fragment->seq != first + i || !is_candidate(server, fragment))
            continue;
        struct gw_rank_set missing = missing_of(server, fragment);
        gw_rank_set_join(&server->deadline.late, &missing);
        finish_without(server, fragment, &missing);
    }
}

/*
 * How many fragments from `expected` on may lack workers, going by who is late or was last. What
 * the others have sent of more had better wait in the switches, where one packet completes it.
 */
static uint32_t span_of(const struct gw_server *server)
{
    const struct gw_deadline *deadline = &server->deadline;
    const struct gw_fragment *newest = gw_server_fragment(server, deadline->known);
    bool is_late = !gw_rank_set_is_empty(&deadline->late);
    const struct gw_rank_set *suspects = is_late ? &deadline->late : &deadline->was_late;
    uint32_t least = is_late ? 0 : 1; /* it may be somebody else */
    if (newest->seq != deadline->known || newest->state == GW_FRAGMENT_EMPTY)
        return least;
    /* So many that, with these, they are no more than the bound of those that will be known. */
    uint64_t before = server->expected - first_of(server, newest);
    uint64_t used =
        GW_AGG_BOUND_ONE * (uint64_t)gw_left_out_most(&deadline->books, newest->key, suspects);
    uint64_t allowed = before * newest->bound, span = server->cfg.window_max;
    if (before > INT32_MAX || allowed < used)
        return least;
    if (newest->bound < GW_AGG_BOUND_ONE &&
        (allowed - used) / (GW_AGG_BOUND_ONE - newest->bound) < span)
        span = (allowed - used) / (GW_AGG_BOUND_ONE - newest->bound);
    while (span > least && !are_near(server, suspects, server->expected + (uint32_t)span - 1))
        span /= 2;
    return span > least ? (uint32_t)span : least;
}

/* They are asked for something; since when says what came first. */
static void note_asked(struct gw_server *server, const struct gw_rank_set *set, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    for (uint32_t rank = 0; (rank = gw_rank_set_next(set, rank)) < server->cfg.world; rank++)
        if (!gw_rank_set_has(&deadline->asked, rank))
            deadline->asked_since[rank] = now;
    gw_rank_set_join(&deadline->asked, set);
}

/* Whether nobody else was late before this one. */
static bool is_alone_late(const struct gw_deadline *deadline, uint32_t rank)
{
    return gw_rank_set_has(&deadline->was_late, rank) || gw_rank_set_is_empty(&deadline->was_late);
}

/* So long after a question the answer came: the shortest time counts, longer ones slowly. */
static void note_trip(struct gw_deadline *deadline, gw_time waited)
{
    enum { GAIN = 16 };
    if (deadline->trip == 0 || waited < deadline->trip)
        deadline->trip = waited;
    else
        deadline->trip += (waited - deadline->trip) / GAIN;
}

/*
 * Some of these have answered: that tells how long to wait for others. Of who was late it counts
 * only if the last who was late was another: one straggler is nothing usual.
 */
static void note_answers(struct gw_server *server, const struct gw_rank_set *from, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    for (uint32_t rank = 0; (rank = gw_rank_set_next(from, rank)) < server->cfg.world; rank++) {
        bool is_late = gw_rank_set_has(&deadline->late, rank);
        if (!gw_rank_set_has(&deadline->asked, rank) || (is_late && is_alone_late(deadline, rank)))
            continue;
        gw_time waited = now - deadline->asked_since[rank];
        gw_patience_note(&deadline->patience, waited);
        note_trip(deadline, waited);
    }
    gw_rank_set_remove(&deadline->asked, from);
}

/* Asks these positions, and tells all, to send so many fragments from `expected` on again. */
static void ask(struct gw_server *server, uint32_t positions, uint32_t span)
{
    server->deadline.positions = positions;
    server->deadline.span = span;
    server->stats.probes++;
    gw_server_order_all(server, server->expected, GW_AGG_REQUEST | GW_AGG_SPAN);
}

static uint32_t positions_of(const struct gw_server *server, const struct gw_rank_set *set)
{
    uint32_t positions = 0;
    for (uint32_t rank = 0; (rank = gw_rank_set_next(set, rank)) < server->cfg.world; rank++)
        positions |= gw_contributors_position(&server->contributors, rank);
    return positions;
}

/* Asks each of them alone for what it has out, and for what it lacks (take_invitation()). */
static void invite(struct gw_server *server, const struct gw_rank_set *set)
{
    for (uint32_t rank = 0; (rank = gw_rank_set_next(set, rank)) < server->cfg.world; rank++) {
        server->stats.invited++;
        gw_server_order(server, server->expected, server->addresses[rank],
                        GW_AGG_REQUEST | GW_AGG_SPAN | GW_AGG_UNICAST);
    }
}

/*
 * Who is missing, as far as the server sees, from what has begun here, and from the first `span`
 * fragments; and up to which of them somebody is who is not late. What has begun here has left a
 * switch, so the rest cannot become complete there.
 */
static struct gw_rank_set lacking_of(const struct gw_server *server, uint32_t span, uint32_t *end)
{
    struct gw_rank_set lacking = {0};
    *end = 0;
    for (uint32_t i = 0; i < server->positions; i++) {
        const struct gw_fragment *fragment = gw_server_fragment(server, server->expected + i);
        bool is_here =
            fragment->state != GW_FRAGMENT_EMPTY && fragment->seq == server->expected + i;
        if (is_here ? fragment->state == GW_FRAGMENT_DONE : i >= span)
            continue;
        struct gw_rank_set missing =
            is_here ? missing_of(server, fragment) : server->contributors.everybody;
        gw_rank_set_join(&lacking, &missing);
        if (!gw_rank_set_is_within(&missing, &server->deadline.late))
            *end = i + 1;
    }
    return lacking;
}

/*
 * Asks for what switches hold, one worker below each that is neither late nor silent, and of which
 * something is missing. Those who are late or silent are asked, too: what they send after a part
 * was taken out of a switch would be alone there.
 */
static void probe(struct gw_server *server, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    uint32_t span = span_of(server), end = 0;
    if (server->open && span < deadline->known - server->expected + 1)
        span = deadline->known - server->expected + 1;
    if (span > server->positions)
        return;
    struct gw_rank_set lacking = lacking_of(server, span, &end);
    deadline->asked_at = now;
    note_asked(server, &deadline->late, now);
    invite(server, &deadline->late);
    if (end == 0 || server->levels == 0)
        return; /* no switch holds anything */
    struct gw_rank_set except = server->contributors.everybody;
    gw_rank_set_remove(&except, &lacking);
    gw_rank_set_join(&except, &deadline->late);
    gw_rank_set_join(&except, &deadline->silent);
    struct gw_rank_set chosen = {0};
    uint32_t positions = gw_contributors_missing(&server->contributors, &except, &chosen);
    if (gw_rank_set_is_empty(&chosen))
        gw_rank_set_clear(&deadline->silent); /* the next round begins anew */
    positions |= positions_of(server, &deadline->silent);
    gw_rank_set_join(&deadline->silent, &chosen);
    note_asked(server, &chosen, now);
    ask(server, positions | positions_of(server, &deadline->late), end);
}

/*
 * Some who were late are heard of. What they have sent of fragments that others wait for is alone
 * in switches, and would stay there; and they lack results.
 */
static void come_back(struct gw_server *server, const struct gw_rank_set *from)
{
    struct gw_deadline *deadline = &server->deadline;
    struct gw_rank_set away = deadline->late;
    gw_rank_set_remove(&away, from);
    gw_rank_set_remove(&deadline->late, &away);
    invite(server, &deadline->late);
    deadline->was_late = deadline->late;
    deadline->late = away;
}

/* Notes a fragment that was sent again; whether all behind it had better be, too. */
static bool is_crawling(const struct gw_server *server, struct gw_crawl *crawl, uint32_t seq,
                        gw_time now)
{
    if (seq + 1 == crawl->next)
        return false; /* the same once more */
    bool is_step = seq == crawl->next && now - crawl->at >= trip_of(server) / 2;
    crawl->count = is_step ? (uint8_t)(crawl->count % CRAWL_AGAIN + 1) : 1;
    crawl->next = seq + 1;
    crawl->at = now;
    return crawl->count == CRAWL_MIN;
}

void gw_server_deadline_answered(struct gw_server *server, const struct gw_fragment *fragment,
                                 uint32_t rank, gw_time now)
{
    struct gw_rank_set one = {0};
    if (!server->cfg.patience || fragment->bound == 0 ||
        !is_crawling(server, &server->deadline.crawls[rank], fragment->seq, now))
        return;
    gw_rank_set_add(&one, rank);
    invite(server, &one);
}

/* A result that was not asked for tells how long one usually has to wait. */
static void note_result(struct gw_server *server, const struct gw_fragment *fragment, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    bool is_next = deadline->result_at != GW_TIME_NEVER && deadline->result_key == fragment->key;
    if (is_next && deadline->asked_at == GW_TIME_NEVER)
        gw_patience_result(&deadline->patience, now - deadline->result_at, 1, server->positions);
    deadline->result_at = now;
    deadline->result_key = fragment->key;
}

void gw_server_deadline_heard(struct gw_server *server, struct gw_fragment *fragment,
                              const struct gw_rank_set *from, bool is_resent, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    if (!server->cfg.patience)
        return;
    uint32_t seq = fragment->seq;
    deadline->is_wanted = fragment->bound > 0;
    bool is_back = gw_rank_set_overlaps(&deadline->late, from);
    if ((is_resent || is_back) && gw_rank_set_overlaps(&deadline->asked, from))
        note_answers(server, from, now);
    if (is_back)
        come_back(server, from);
    gw_rank_set_remove(&deadline->silent, from);
    if (gw_rank_set_equals(from, &server->contributors.everybody)) {
        if ((int32_t)(seq - deadline->heard_all) > 0)
            deadline->heard_all = seq;
    } else {
        for (uint32_t rank = 0; (rank = gw_rank_set_next(from, rank)) < server->cfg.world; rank++)
            if ((int32_t)(seq - heard_of(deadline, rank)) > 0)
                deadline->heard[rank] = seq;
    }
    bool is_known = fragment->state == GW_FRAGMENT_DONE || is_majority(server, &fragment->set);
    if (is_known && (int32_t)(seq - deadline->known) > 0) {
        deadline->known = seq;
        deadline->known_key = fragment->key;
    }
    if (fragment->state == GW_FRAGMENT_DONE)
        note_result(server, fragment, now);
    if (is_resent && fragment->state == GW_FRAGMENT_DONE && fragment->bound > 0 &&
        is_crawling(server, &deadline->crawl, seq, now))
        probe(server, now);
    if (!is_candidate(server, fragment) || gw_rank_set_is_empty(&deadline->late))
        return;
    struct gw_rank_set missing = missing_of(server, fragment);
    if (gw_rank_set_is_within(&missing, &deadline->late))
        finish_without(server, fragment, &missing);
}

/*
 * How long to wait for the next round. While workers are late it asks for a window as soon as the
 * others can have sent it.
 */
static gw_time wait_of(const struct gw_server *server)
{
    const struct gw_deadline *deadline = &server->deadline;
    bool is_first = deadline->asked_at == GW_TIME_NEVER && deadline->rounds == 0;
    if (is_first && !gw_rank_set_is_empty(&deadline->late))
        return trip_of(server);
    return gw_patience_of(&deadline->patience) << (deadline->rounds ? deadline->rounds - 1 : 0);
}

void gw_server_deadline_arm(struct gw_server *server)
{
    const struct gw_deadline *deadline = &server->deadline;
    if (server->cfg.patience && deadline->is_wanted && !server->is_stopped &&
        (server->open || deadline->rounds < PATIENCE_DOUBLINGS_MAX))
        gw_app_arm_by(&server->app, gw_time_add(deadline->since, wait_of(server)));
}

void gw_server_deadline_expire(struct gw_server *server, gw_time now)
{
    struct gw_deadline *deadline = &server->deadline;
    if (!server->cfg.patience || !deadline->is_wanted || server->is_stopped ||
        now - deadline->since < wait_of(server))
        return;
    uint64_t results = server->stats.results;
    bool was_asked = deadline->asked_at != GW_TIME_NEVER || server->levels == 0;
    if (was_asked)
        decide(server);
    deadline->since = now;
    deadline->rounds += deadline->rounds < PATIENCE_DOUBLINGS_MAX;
    if (server->stats.results != results) {
        server->progress_at = now;
        server->rounds = 0;
        gw_server_deadline_restart(server, true, now);
    } else {
        probe(server, now);
    }
}
