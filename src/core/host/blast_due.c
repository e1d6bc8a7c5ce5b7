/*
 * What is still to be sent of a blast, and which of it is important; see blast.h.
 *
 * Important and unimportant places have sets of their own, since a train shares its ECN. Trains
 * take turns so that of both about the same part of what is due has left, or the important ones go
 * first, as the application wishes.
 *
 * The application says which places are important, or by which rule that is found in their values.
 * These may lie far beyond the caches, and nobody guesses which random place is next, so a place is
 * *foreseen* shortly before it leaves, batch by batch, and only so far ahead of what leaves that
 * both kinds can fill their trains. By a rule it is *weighed* then: summed, and still in the cache
 * when it is copied; so its values are brought from memory before. A processor fetches but some
 * twenty lines at a time, and waits when it is to fetch more; so one half of each place of a batch
 * is fetched while the batch before is weighed, and the other half of one place with each packet
 * that leaves. Important ones that leave first are an exception: for them all places have to be
 * weighed before.
 *
 * Invariant: turns from `foreseen` on are all due, and in neither set; of those before, what was
 * found stays as it is, whatever the application does with the memory.
 */
#include "core/host/blast.h"

#include "base/align.h"
#include "core/host/credit.h"

enum {
    /* Trains of places that are foreseen, and wait: 64 KB each, as the kernel takes them, so L2 has
     * all. Of two kinds that are alike each finds a full train (own choice). */
    TRAINS_AHEAD = 4,
    /* Turns that are foreseen at a time: enough to be summed several at a time, few enough to be
     * near while they are (own choice). */
    BATCH = 32,
    FETCH_MAX = 4096, /* bytes with a packet: half of one of MTU 9000; the rest of longer ones comes
                         with its sum */
};

_Static_assert((int)BATCH <= GW_IMPORTANCE_BATCH, "a batch is weighed in one call");

static enum gw_blast_importance importance_of(const struct gw_blast_tx *blast, uint32_t place)
{
    if (!blast->important)
        return GW_IMPORTANT;
    return gw_bit_is_set(blast->important, place) ? GW_IMPORTANT : GW_UNIMPORTANT;
}

static void put(struct gw_blast_tx *blast, uint32_t place, uint32_t turn)
{
    enum gw_blast_importance importance = importance_of(blast, place);
    gw_bitmap_set(&blast->due[importance], turn);
    blast->in_round[importance]++;
}

void gw_blast_tx_demand(struct gw_blast_tx *blast, uint32_t place)
{
    put(blast, place, gw_blast_order_turn(&blast->order, place));
}

static bool is_weighed(const struct gw_blast_tx *blast)
{
    return blast->important == blast->found;
}

/* Foresees a batch of turns, whose places become due in their sets. */
static void foresee(struct gw_blast_tx *blast)
{
    const uint32_t first = blast->foreseen, left = blast->total - first;
    const uint32_t count = left < BATCH ? left : BATCH;
    const uint32_t known = is_weighed(blast) ? 2 * BATCH : count; /* with those of the next batch */
    uint32_t places[2 * BATCH];
    uint64_t important = 0;
    for (uint32_t i = 0, place = gw_blast_order_place(&blast->order, first); i < known; i++) {
        places[i] = place;
        place = gw_blast_order_next(&blast->order, place);
    }
    if (is_weighed(blast))
        important = gw_importance_weigh(&blast->rule, places, count, places + BATCH);
    for (uint32_t i = 0; i < count; i++) {
        if (is_weighed(blast))
            gw_bit_or(blast->found, places[i], important >> i & 1);
        put(blast, places[i], first + i);
    }
    blast->foreseen += count;
}

/* Has the first half of the values of a place brought from memory, or the beginning of it; see
 * gw_importance_weigh(). */
static void fetch(const struct gw_blast_tx *blast, uint32_t turn)
{
    const uint64_t place = gw_blast_order_place(&blast->order, turn);
    const uint32_t half = blast->path.mtu / 2;
    gw_prefetch(blast->data + place * blast->path.mtu, half < FETCH_MAX ? half : FETCH_MAX,
                GW_PREFETCH_LATER);
}

void gw_blast_tx_look_ahead(const struct gw_endpoint *ep, struct gw_blast_tx *blast)
{
    uint32_t ahead = blast->important_first ? blast->total : TRAINS_AHEAD * ep->cfg.train;
    while (blast->foreseen < blast->total &&
           blast->due[GW_UNIMPORTANT].count + blast->due[GW_IMPORTANT].count < ahead)
        foresee(blast);
    /* As many packets leave from one batch to the next as it has turns. */
    const uint32_t turn = blast->foreseen + (uint32_t)(blast->sent_packets % BATCH);
    if (is_weighed(blast) && turn < blast->total)
        fetch(blast, turn);
}

void gw_blast_tx_appraise(struct gw_blast_tx *blast, const struct gw_send *send)
{
    blast->foreseen = send->data ? 0 : blast->total;
    blast->important = send->important;
    if (!gw_send_is_weighed(send))
        return;
    const struct gw_importance_tensor tensor = {
        .values = send->data, .size = send->bytes, .fragment_size = blast->path.mtu};
    gw_importance_init(&blast->rule, &tensor, &send->importance, GW_IMPORTANCE_SEED);
    memset(blast->found, 0, gw_bit_words(blast->total) * sizeof(*blast->found));
    blast->important = blast->found;
}

/* The receiver begins to count when it opens the flow. */
static void renew_credit(const struct gw_endpoint *ep, struct gw_blast_tx *blast)
{
    const struct gw_transport *transport = blast->transport;
    blast->credit =
        transport->grant ? gw_credit_free(ep, transport, &blast->path, blast->total) : UINT32_MAX;
    blast->granted = 0;
    blast->is_starved = false;
    blast->starves = 0;
    blast->starve_at = GW_TIME_NEVER;
}

void gw_blast_tx_renew(const struct gw_endpoint *ep, struct gw_blast_tx *blast)
{
    renew_credit(ep, blast);
    const bool is_whole = !blast->important && blast->foreseen == blast->total;
    gw_bitmap_fill(&blast->due[GW_IMPORTANT], blast->total, is_whole);
    gw_bitmap_fill(&blast->due[GW_UNIMPORTANT], blast->total, false);
    blast->in_round[GW_IMPORTANT] = blast->due[GW_IMPORTANT].count;
    blast->in_round[GW_UNIMPORTANT] = 0;
    for (uint32_t turn = 0; !is_whole && turn < blast->foreseen; turn++)
        put(blast, gw_blast_order_place(&blast->order, turn), turn);
    gw_blast_tx_look_ahead(ep, blast);
}

enum gw_blast_importance gw_blast_tx_choose(const struct gw_blast_tx *blast)
{
    const uint64_t important = blast->due[GW_IMPORTANT].count;
    const uint64_t unimportant = blast->due[GW_UNIMPORTANT].count;
    if (!important || !unimportant || blast->important_first)
        return important ? GW_IMPORTANT : GW_UNIMPORTANT;
    return important * blast->in_round[GW_UNIMPORTANT] >=
                   unimportant * blast->in_round[GW_IMPORTANT]
               ? GW_IMPORTANT
               : GW_UNIMPORTANT;
}
