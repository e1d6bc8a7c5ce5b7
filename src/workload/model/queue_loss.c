/*
 * Losses of a queue with two thresholds; see queue_loss.h.
 *
 * The port, for this queue, is idle; serves it; or is in a busy period of one of two kinds, of what
 * goes before it, or of a packet from behind that is on the wire and of what then goes before. In
 * a period that began while the queue had nothing to send all its work waits (FIRST); in one that
 * began while it was served (AFTER), and while it is, a packet is in part sent, and what is left of
 * that is no part of the queue. So a packet that meets the work x > S is taken when no packet ends
 * within the first x - S of that. With U(x) the flow upwards across x, which is the density of
 * being served, and J the parts of it in each kind of period,
 *
 *     U' = a P - U,    J' = a p - J,    p (end + a) = U start + J    (no start for FIRST)
 *
 * where a is the load that is taken at x, P the sum of all densities and p that of one kind.
 *
 * Where packets end is found by queue_heads.h, or at less cost by gw_loss_cross(): n packets come
 * to x with the density x^(n-1) exp(-x) / (n-1)!, so if each number is k times as probable as the
 * one before, the ends lie at random, k to a mean packet, and P' = (k - 1) P. Thus k is found at S,
 * from the P of all states in which a packet is in part sent.
 */
#include "workload/model/queue_loss.h"

#include <string.h>

enum {
    FLOW,      /* U */
    AFTER,     /* J of the two kinds of periods that came while the queue was served */
    FIRST = 3, /* J of the two kinds that came before */
    MASS = 5,  /* of all densities passed, from the threshold on */
    LOST,      /* and of those in which a small packet would have been lost */
    LOST_LARGE,
    PASSED = 3, /* that are sums of what has been passed */
    DIM = GW_LOSS_DIM,
    KINDS = GW_LOSS_KINDS,
    PARTS = 8,        /* of a packet: the step in which rates change */
    FELT = 16,        /* packets after which exp(-x) is none */
    TAYLOR_TERMS = 8, /* with lengths up to 1/8 the next one is below 1e-10 */
};

#define EQUAL   1e-6   /* moments nearer to those of an exponential time are the same */
#define NOTHING 1e-200 /* below that the parts of a sum are too rough for their ratio */
#define RESCALE 1e100  /* far from what overflows */

/* Square root by Newton's method, of 0 to 1. */
static double root(double x)
{
    double y = 1, last = 2;
    while (x > 0 && y < last) {
        last = y;
        y = (y + x / y) / 2;
    }
    return x > 0 ? y : 0;
}

/* The inverse of the squares of a series. */
double gw_loss_decay(double x)
{
    double sum = 1, term = 1;
    int squarings = 0;
    if (x > 700)
        return 0;
    for (; x > 1.0 / 8; x /= 2)
        squarings++;
    for (int i = 1; i <= TAYLOR_TERMS; i++) {
        term *= x / i;
        sum += term;
    }
    for (; squarings > 0; squarings--)
        sum *= sum;
    return 1 / sum;
}

static void multiply(double product[DIM][DIM], double a[DIM][DIM], double b[DIM][DIM])
{
    double result[DIM][DIM];
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            result[i][j] = 0;
            for (int k = 0; k < DIM; k++)
                result[i][j] += a[i][k] * b[k][j];
        }
    memcpy(product, result, sizeof(result));
}

/* How the state changes with the length. */
static void set_slope(double slope[DIM][DIM], const struct gw_loss_maps *maps,
                      const struct gw_loss_rates *rates)
{
    double sent[DIM] = {[FLOW] = 1}; /* of all densities those in which a packet is in part sent */
    memset(slope, 0, sizeof(double[DIM][DIM]));
    for (int k = 0; k < KINDS; k++) {
        double stay = 1 / (maps->ends[k] + rates->served);
        double wait = 1 / (maps->first_ends[k] + rates->first);
        sent[FLOW] += maps->starts[k] * stay;
        sent[AFTER + k] = stay;
        slope[AFTER + k][FLOW] = rates->served * maps->starts[k] * stay;
        slope[AFTER + k][AFTER + k] = rates->served * stay - 1;
        slope[FIRST + k][FIRST + k] = rates->first * wait - 1;
        slope[FLOW][FIRST + k] = rates->first * wait;
        slope[MASS][FIRST + k] = wait;
        slope[LOST][FIRST + k] = rates->small_first * wait;
        slope[LOST_LARGE][FIRST + k] = rates->large_first * wait;
    }
    for (int j = FLOW; j < FIRST; j++) {
        slope[FLOW][j] = rates->served * sent[j];
        slope[MASS][j] = sent[j];
        slope[LOST][j] = rates->small_lost * sent[j];
        slope[LOST_LARGE][j] = rates->large_lost * sent[j];
    }
    slope[FLOW][FLOW] -= 1;
}

/* map = exp(slope length), by Taylor's series of a small part, squared again and again. */
static void exponential(double map[DIM][DIM], double slope[DIM][DIM], double length)
{
    int squarings = 0;
    double power[DIM][DIM];
    for (; length > 1.0 / PARTS; length /= 2)
        squarings++;
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            slope[i][j] *= length;
            map[i][j] = power[i][j] = i == j;
        }
    for (int term = 1; term <= TAYLOR_TERMS; term++) {
        multiply(power, power, slope);
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j < DIM; j++) {
                power[i][j] /= term;
                map[i][j] += power[i][j];
            }
    }
    for (; squarings > 0; squarings--)
        multiply(map, map, map);
}

struct gw_loss_rates gw_loss_rates(const struct gw_loss_maps *maps, double over, double beyond)
{
    double small = maps->queue.small * maps->queue.own, large = maps->queue.own - small;
    double small_taken = over > 0 ? gw_loss_decay(maps->small_packets * over) : 1;
    double large_taken = beyond > 0 ? gw_loss_decay(maps->large_packets * beyond) : 1;
    return (struct gw_loss_rates){
        .served = small * small_taken + large * large_taken,
        .first = small * (over <= 0) + large * (beyond <= 0),
        .small_lost = 1 - small_taken,
        .large_lost = 1 - large_taken,
        .small_first = over > 0,
        .large_first = beyond > 0,
    };
}

/* The `step` packets that begin `over` packets above the threshold, all below the limit. */
static void set_near(double map[DIM][DIM], const struct gw_loss_maps *maps, double over,
                     double step)
{
    double slope[DIM][DIM], part[DIM][DIM];
    uint32_t parts = (uint32_t)(step * PARTS) + 1;
    double length = step / parts;
    for (uint32_t i = 0; i < parts; i++) {
        struct gw_loss_rates rates = gw_loss_rates(maps, over + (i + 0.5) * length, -1);
        set_slope(slope, maps, &rates);
        exponential(part, slope, length);
        if (i == 0)
            memcpy(map, part, sizeof(part));
        else
            multiply(map, part, map);
    }
}

/* row = row exp(slope length) */
static void apply(double row[DIM], double slope[DIM][DIM], double length)
{
    double term[DIM], next[DIM];
    memcpy(term, row, sizeof(term));
    for (int t = 1; t <= TAYLOR_TERMS; t++) {
        for (int j = 0; j < DIM; j++) {
            next[j] = 0;
            for (int i = 0; i < DIM; i++)
                next[j] += term[i] * slope[i][j];
            next[j] *= length / t;
        }
        for (int j = 0; j < DIM; j++)
            row[j] += term[j] = next[j];
    }
}

/* With the limit `over` packets above the threshold; from where nothing is left down to it. */
static void set_tail(double tail[PASSED][DIM], const struct gw_loss_maps *maps, double over)
{
    double slope[DIM][DIM];
    memset(tail, 0, sizeof(double[PASSED][DIM]));
    for (int row = 0; row < PASSED; row++)
        tail[row][MASS + row] = 1;
    for (int i = FELT * PARTS - 1; i >= 0; i--) {
        double beyond = (i + 0.5) / PARTS;
        struct gw_loss_rates rates = gw_loss_rates(maps, over + beyond, beyond);
        set_slope(slope, maps, &rates);
        for (int row = 0; row < PASSED; row++)
            apply(tail[row], slope, 1.0 / PARTS);
    }
}

/*
 * Two exponential times with the chances c and the means t_1 > 1 > t_2, as parts of their common
 * mean, have three moments right when t_1 and t_2 solve t^2 = s t - p: then the reduced moments
 * f_n, of order n divided by n!, f_0 = f_1 = 1, follow f_(n+2) = s f_(n+1) - p f_n. No such times
 * have moments below those of one exponential time, which is taken then.
 */
static void fit(double chances[KINDS], double ends[KINDS], const struct gw_completion *moments)
{
    double mean = moments->mean, means[KINDS] = {1, 1};
    double f2 = moments->square / (2 * mean * mean);
    double f3 = moments->cube / (6 * mean * mean * mean);
    chances[0] = 0.5;
    if (f2 > 1 + EQUAL && f3 > f2 * f2 * (1 + EQUAL)) {
        double s = (f3 - f2) / (f2 - 1), p = s - f2;
        means[0] = s * (1 + root(1 - 4 * p / (s * s))) / 2;
        means[1] = p / means[0];
        chances[0] = (1 - means[1]) / (means[0] - means[1]);
    }
    chances[1] = 1 - chances[0];
    for (int k = 0; k < KINDS; k++)
        ends[k] = 1 / (means[k] * mean);
}

/*
 * A completion time is that of the packet itself, X, and of what goes before. Served out of turn,
 * at the rate a at which that arrives while X lasts, those periods b, independent of each other,
 * make it as long: with c = 1 + a E[b], that is the mean, 2 c^2 + a E[b^2] the second moment and
 * 6 c^3 + 6 c a E[b^2] + a E[b^3] the third. The mean is that which carries the load above.
 */
static void set_periods(struct gw_loss_maps *maps, const struct gw_drop_queue *queue)
{
    double mean = 1 / (1 - queue->above), a = queue->arrives;
    double scale = mean / queue->completion.mean;
    const struct gw_completion whole = {
        .mean = mean,
        .square = queue->completion.square * scale * scale,
        .cube = queue->completion.cube * scale * scale * scale,
    };
    fit(maps->first_chances, maps->first_ends, &whole);
    struct gw_completion period = {1, 2, 6};
    if (queue->above > 0) {
        period.mean = (mean - 1) / a;
        period.square = (whole.square - 2 * mean * mean) / a;
        period.cube = (whole.cube - 6 * mean * mean * mean) / a - 6 * mean * period.square;
    }
    fit(maps->starts, maps->ends, &period);
    for (int k = 0; k < KINDS; k++)
        maps->starts[k] *= a;
}

void gw_loss_prepare(struct gw_loss_maps *maps, const struct gw_drop_queue *queue, double step)
{
    double slope[DIM][DIM];
    maps->queue = *queue;
    maps->step = step;
    maps->has_large = maps->has_tails = 0;
    double load = queue->above + queue->own;
    maps->small_packets = maps->large_packets = load < 1 ? load : 1;
    set_periods(maps, queue);
    struct gw_loss_rates rates = gw_loss_rates(maps, -1, -1);
    set_slope(slope, maps, &rates);
    exponential(maps->both, slope, step);
}

struct gw_loss_empty gw_loss_empty(const struct gw_loss_maps *maps)
{
    const struct gw_drop_queue *queue = &maps->queue;
    double room = 1 - queue->above - queue->own;
    double below = queue->below < room ? queue->below : room;
    struct gw_loss_empty empty = {.idle = below > 0 ? room - below : 1};
    /* The rate at which that ends. */
    double enter = queue->arrives * empty.idle + (below > 0 ? below : 0);
    for (int k = 0; k < KINDS; k++)
        empty.periods[k] = enter * maps->first_chances[k] / (maps->first_ends[k] + queue->own);
    return empty;
}

void gw_loss_begin(struct gw_loss_walk *walk, const struct gw_loss_maps *maps)
{
    const struct gw_loss_empty empty = gw_loss_empty(maps);
    *walk = (struct gw_loss_walk){.below = empty.idle};
    for (int k = 0; k < KINDS; k++) {
        walk->below += empty.periods[k];
        walk->state[FIRST + k] = maps->queue.own * empty.periods[k];
    }
    walk->state[FLOW] = maps->queue.own * walk->below;
}

static void advance(struct gw_loss_walk *walk, const double (*map)[DIM])
{
    double next[MASS];
    for (int i = 0; i < LOST_LARGE; i++) {
        double sum = 0;
        for (int j = 0; j < MASS; j++)
            sum += map[i][j] * walk->state[j];
        if (i < MASS)
            next[i] = sum;
        else
            walk->state[i] += sum;
    }
    memcpy(walk->state, next, sizeof(next));
    if (walk->state[FLOW] < RESCALE)
        return;
    for (int i = 0; i < DIM; i++)
        walk->state[i] /= RESCALE;
    walk->below /= RESCALE;
}

void gw_loss_raise(struct gw_loss_walk *walk, const struct gw_loss_maps *maps)
{
    advance(walk, (const double(*)[DIM])maps->both);
    walk->below += walk->state[MASS];
    walk->state[MASS] = walk->state[LOST] = 0;
}

static uint32_t near_of(const struct gw_loss_walk *walk)
{
    return walk->above < GW_LOSS_NEAR ? walk->above : GW_LOSS_NEAR;
}

void gw_loss_cross(const struct gw_loss_walk *walk, struct gw_loss_maps *maps, double part)
{
    double slope[DIM][DIM], sum = 0, rise = 0;
    const struct gw_loss_rates rates = gw_loss_rates(maps, -1, -1);
    set_slope(slope, maps, &rates);
    for (int j = FLOW; j < FIRST; j++) {
        sum += slope[MASS][j] * walk->state[j];
        for (int i = 0; i < MASS; i++)
            rise += slope[MASS][j] * slope[j][i] * walk->state[i];
    }
    if (sum < NOTHING)
        return;
    double packets = 1 + rise / sum, off = packets - maps->small_packets;
    if ((off < 0 ? -off : off) < part * packets)
        return;
    maps->small_packets = maps->large_packets = packets;
    maps->has_large = maps->has_tails = 0;
}

void gw_loss_raise_limit(struct gw_loss_walk *walk, struct gw_loss_maps *maps)
{
    uint32_t near = near_of(walk);
    if (!(maps->has_large & UINT32_C(1) << near))
        set_near(maps->large[near], maps, near * maps->step, maps->step);
    maps->has_large |= UINT32_C(1) << near;
    advance(walk, (const double(*)[DIM])maps->large[near]);
    walk->above++;
}

struct gw_loss gw_loss_read(const struct gw_loss_walk *walk, struct gw_loss_maps *maps)
{
    uint32_t near = near_of(walk);
    double passed[PASSED] = {0};
    if (!(maps->has_tails & UINT32_C(1) << near))
        set_tail(maps->tails[near], maps, near * maps->step);
    maps->has_tails |= UINT32_C(1) << near;
    for (int row = 0; row < PASSED; row++)
        for (int j = 0; j < MASS; j++)
            passed[row] += maps->tails[near][row][j] * walk->state[j];
    double total = walk->below + walk->state[MASS] + passed[0];
    return (struct gw_loss){
        .small = (walk->state[LOST] + passed[1]) / total,
        .large = passed[2] / total,
    };
}

/* x^m for x > 0: by squares, of m to the 2^-40. */
static double power_of(double x, double m)
{
    uint64_t whole = (uint64_t)m;
    double result = 1, square = x, rest = m - (double)whole, part = x;
    for (; whole > 0; whole >>= 1, square *= square)
        if (whole & 1)
            result *= square;
    for (int bit = 0; bit < 40 && rest > 0; bit++) {
        part = root(part);
        rest *= 2;
        if (rest < 1)
            continue;
        rest -= 1;
        result *= part;
    }
    return result;
}

/* With x = rho or 1/rho, whichever is below 1; near 1 the series of rho^m in m (1 - rho). */
double gw_loss_paper(double rho, double m)
{
    double off = rho < 1 ? 1 - rho : rho - 1;
    if (off * (m + 1) < 1e-6)
        return 1 / (m + 1);
    if (rho < 1) {
        double power = power_of(rho, m);
        return power * (1 - rho) / (1 - rho * power);
    }
    return (1 - 1 / rho) / (1 - power_of(1 / rho, m + 1));
}
