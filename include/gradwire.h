/*
 * Gradwire: sums of gradients over workers, added up inside the network, and whatever else the
 * processes of a training job say to each other.
 *
 * A job is a group of `world` processes that call the same collectives in the same order. Each
 * opens the job with its rank, and closes it at the end:
 *
 *     struct gradwire_options options;
 *     gradwire_options_init(&options, sizeof(options));   // rank, world and join from the launcher
 *     gradwire *job;
 *     if (gradwire_open(&options, &job) != GRADWIRE_OK)
 *         errx(1, "%s", gradwire_last_error());
 *     gradwire_allreduce(job, gradients, gradients, count, GRADWIRE_FLOAT32, GRADWIRE_SUM);
 *     gradwire_close(job);
 *
 * Every function returns GRADWIRE_OK or an error; gradwire_last_error() then has one line for
 * people, which names what is wrong and which rank or address it is about. Nothing waits for ever:
 * a call that makes no progress for `deadline_ms` fails on all ranks that are alive. After a
 * failure the contents of output buffers are undefined, further calls return GRADWIRE_ERR_CLOSED,
 * and all ranks must close the job; another may be opened then. GRADWIRE_ERR_INVALID, _BUSY and
 * _FORKED do no such harm, nor do the errors of its own that gradwire_push() lists.
 *
 * One job does everything at once: sums in switches, by servers and around a ring, messages, pushes
 * and pulls, started and waited for in any mixture. Each call NAME has three forms:
 *
 *     gradwire_NAME(...)                        waits until it has ended, and returns how
 *     gradwire_NAME_start(..., &call)           returns at once; then gradwire_wait() or _test()
 *     gradwire_NAME_with(..., options, call)    either: starts it if `call` is not NULL. `options`
 *                                               are of this call alone; NULL: the job's defaults
 *
 * Memory of a started call is the job's until it has ended. Of the calls below, all ranks start
 * those that say "collective" in the same order and with equal arguments, but for memory; messages,
 * pushes and pulls are free of this. Sizes are in elements unless they are called bytes.
 *
 * Threads: one thread at a time may call with one job. A job does not survive fork(): calls in the
 * child return GRADWIRE_ERR_FORKED.
 */
#ifndef GRADWIRE_H
#define GRADWIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRADWIRE_API __attribute__((visibility("default")))

enum gradwire_error {
    GRADWIRE_OK = 0,
    GRADWIRE_ERR_INVALID = -1, /* an argument or option is out of its range */
    GRADWIRE_ERR_NO_MEMORY = -2,
    GRADWIRE_ERR_SYSTEM = -3,      /* the system refused something: a socket, a thread */
    GRADWIRE_ERR_TIMED_OUT = -4,   /* no progress for deadline_ms */
    GRADWIRE_ERR_PEER = -5,        /* a worker, server or switch is lost, or refuses */
    GRADWIRE_ERR_OVERFLOW = -6,    /* a result of integers does not fit their type */
    GRADWIRE_ERR_UNSUPPORTED = -7, /* of the Python package: it has no such call */
    GRADWIRE_ERR_CLOSED = -8,      /* an earlier failure has ended the job */
    GRADWIRE_ERR_FORKED = -9,      /* called in a child of the process that opened the job */
    GRADWIRE_ERR_BUSY = -10,       /* GRADWIRE_CALLS_MAX calls are in work: wait for one */
};

enum {
    GRADWIRE_CALLS_MAX = 64, /* started and not waited for yet, of one job */
};

/* Types of elements. Numbers are little-endian, as in memory. */
enum gradwire_type {
    GRADWIRE_FLOAT32 = 0,
    GRADWIRE_FLOAT16 = 1,
    GRADWIRE_BFLOAT16 = 2,
    GRADWIRE_INT32 = 3,
    GRADWIRE_FLOAT64 = 4,
    GRADWIRE_INT64 = 5,
    GRADWIRE_UINT8 = 6,
};

/* What one element is made of those of all ranks. */
enum gradwire_op {
    GRADWIRE_SUM = 0,
    GRADWIRE_AVERAGE = 1, /* of floats */
    GRADWIRE_MIN = 2,
    GRADWIRE_MAX = 3,
    GRADWIRE_PRODUCT = 4,
};

/*
 * How sums travel. Via ina and ps sum and average float32, float16, bfloat16 and int32; other types
 * and operations go by ring, whatever was said, and are counted where it was not ring
 * (gradwire_stats.rerouted). Via ring floats are added as floats, else as multiples of 2^-27
 * (docs/numbers.md).
 */
enum gradwire_via {
    GRADWIRE_VIA_INA = 0,     /* added up in switches on the way to the server */
    GRADWIRE_VIA_PS = 1,      /* added up by the server alone */
    GRADWIRE_VIA_RING = 2,    /* from rank to rank */
    GRADWIRE_VIA_DEFAULT = 3, /* of a call: as the job's options say; of a job: ina, but ring of two
                                 ranks, and of more than 256 KiB, without server and switch, when
                                 all would meet in the link of rank 0 */
};

/*
 * What a process brings to the job. Equal on all ranks, but for `rank`, `bind`, `spin_us` and
 * `multicast`. Texts are copied by gradwire_open(). NULL or 0 is the default of what may be left
 * out; but `via` 0 is ina, and with `spin_us` 0 nobody looks.
 */
struct gradwire_options {
    size_t size;           /* of this structure, as gradwire_options_init() was told */
    const char *job;       /* name; jobs of different names on one server are apart. "default" */
    int rank;              /* 0 to world - 1 */
    int world;             /* 1 to 1024 */
    const char *join;      /* HOST:PORT that rank 0 listens at; not used with `server` */
    const char *server;    /* HOST:PORT of a `gradwire server`, or of up to 16 that share the sums:
                              HOST:FIRST-LAST, or several with commas between; without, rank 0 is
                              the server */
    const char *switch_;   /* HOST:PORT of the nearest `gradwire switch`, by which everything goes;
                              without, sums by the server's own, and all else straight */
    const char *bind;      /* our own address; without, the one that reaches the others */
    const char *key_file;  /* file whose contents are the job's key, which must be random; without,
                              anybody may join */
    int authenticate;      /* 1: packets carry a code that only holders of the key can make, which
                              there must be; all daemons of the job must have `authenticate: yes` */
    enum gradwire_via via; /* of calls that do not say */
    uint32_t deadline_ms;  /* 30000 */
    uint32_t values;       /* elements per fragment, 16 to 16000, as the MTU allows; 352 */
    uint32_t window;   /* fragments on their way, a power of two up to 2048, where this rank adds
                          up; 0: 512 or fewer, as many as fit its caches with those of all */
    const char *cc;    /* congestion control of flows: "smartt" */
    const char *lb;    /* load balancing of flows: "reps" */
    uint32_t paths;    /* UDP source ports, among which `lb` chooses a packet's path: 1 */
    uint64_t rate_bps; /* of the links, 1 Mb/s to 400 Gb/s: flows have at most what it passes in a
                          round trip under way, and no more than it leaves this rank; 0: as
                          measured, and not less than 1 Gb/s unless a switch says so */
    const char *announce; /* how bursts are announced to switches, which then make room for them:
                             "no"; a threshold in packets, 5 to 75 in steps of 5; or a ratio such as
                             "1/4", by which it follows from the path. "no" */
    const char *signals;  /* where what switches are told of bursts travels: "dscp", or "option", an
                             option of the IPv4 header, which needs CAP_NET_RAW. "dscp" */
    uint64_t largest; /* bytes of the largest tensor or message with a bound (see below): memory for
                         what is known of its parts is made when the job opens, and a larger call is
                         refused. At most 2^24 fragments (of 4 * `values` bytes), and 2^36
                         bytes; 256 MiB */
    int insecure_key_file; /* 1: others may read key_file, and that is meant; else it is refused */
    int encrypt;           /* 1: packets are encrypted from one neighbour to the next, and carry a
                              code; there must be a key, and `encrypt: yes` in all daemons */
    uint32_t spin_us;      /* who waits for a call looks for so long, at most a second, before it
                              sleeps, and so does the I/O thread; three times as long where the
                              caller does that thread's work. Where others need the cores both
                              sleep at once. 100 */
    const char *urgency; /* by which rule messages choose the class of their packets: "message", as
                            the call says; "pias", from class 6 down as they age, whatever it says;
                            or with a preset of the rule, as "pias:kernel". "message" */
    const char *multicast; /* results of sums that rank 0 adds up: ADDRESS:PORT of a group to which
                              it sends them once for all who hear it; "none": once to each, and
                              this rank hears no group. Without: a group that it chooses, if there
                              are three ranks or more, and neither `authenticate` nor `encrypt`.
                              Each of `threads` behind the first has the next address */
    uint32_t threads; /* I/O threads, 1 to 16, with sockets of their own, among which collectives
                         are cut if each rank has 1 MiB or more (of all-gather and reduce-scatter:
                         in the smaller memory); for ranks with cores to spare, and links that one
                         thread cannot fill. Not those with a bound or worths, and with other
                         options of their parts (layer, importance) only all-reduces. 1 */
};

/* A job that this process has opened. */
typedef struct gradwire gradwire;

/* An asynchronous call. */
typedef uint64_t gradwire_call;

/* Counters of a job since it was opened. */
struct gradwire_stats {
    size_t size;                 /* of this structure; the caller sets it */
    uint64_t fragments;          /* sent for the first time */
    uint64_t retransmits;        /* sent again */
    uint64_t overflow_fragments; /* collected as floats, because their integers saturated */
    uint64_t server_received;    /* gradient packets into the server; 0 on ranks without one */
    uint64_t server_results;     /* fragments that it finished */
    uint64_t switch_results;     /* of these, added up in switches altogether */
    uint64_t server_bytes;       /* bytes into the server's link, headers included */
    uint64_t datagrams_sent;
    uint64_t datagrams_received;
    uint64_t datagrams_refused; /* stray, forged, replayed or malformed */
    uint64_t kernel_drops;      /* receive buffer full */
    uint64_t timeouts;          /* packets between ranks given up because nothing was heard of them
                                   in time */
    uint64_t given_up;          /* fragments of messages that were lost, and not wanted again */
    uint64_t rerouted;          /* sums that their `via` cannot do, and that went by ring */
    uint64_t packets_refused;   /* from ranks: too early, too late, of messages that are too long or
                                   that nobody awaits, contradicting themselves or each other */
    uint64_t copies_saved;      /* of results that rank 0 sent once for several ranks */
};

/* Which fragments of what is sent are important: switches that run out of room drop the others
 * first, and lose none of these as long as there is memory. */
enum gradwire_importance {
    GRADWIRE_IMPORTANCE_ALL = 0,    /* all of them, the default */
    GRADWIRE_IMPORTANCE_MEANS = 1,  /* whose mean magnitude, as it is sent, is above the median of
                                       the means of fragments of the same message; of floats */
    GRADWIRE_IMPORTANCE_VALUES = 2, /* is above the median of elements' magnitudes, as published */
    GRADWIRE_IMPORTANCE_WORTH = 3,  /* whose `worth` is above the median of fragments' worths */
};

/* What a fragment of `count` elements (of a message: bytes) is worth; more is more important.
 * Called by the thread that starts the call, before that returns. */
typedef double gradwire_worth(const void *fragment, size_t count, size_t index, void *context);

/*
 * Where a call with a bound says what is missing. Fragment i begins at element (of a message: byte)
 * i * `fragment`; all are equally long but for the last. This and the arrays are the job's until
 * the call was waited for: another one with any of them is refused before that. Each array may be
 * NULL, and without either `room` does not matter. They are of what a rank gets: of a send or push,
 * and of a reduce at other ranks than its root, they say nothing.
 */
struct gradwire_parts {
    size_t room;            /* fragments that the arrays have room for: gradwire_fragments() */
    uint64_t *arrived;      /* bit i % 64 of word i / 64: fragment i is there */
    uint16_t *contributors; /* of a collective or pull: ranks, or pushes, whose values are in it */
    size_t fragment;        /* set by the call, as are the next two */
    size_t count;           /* fragments of the tensor, or of the message as it was sent */
    size_t missing;         /* of these; behind the end of a shorter message no bits are set */
};

/*
 * Of one call.
 *
 * A bound is the largest part of the fragments that may be missing: 0 (the default: all must be
 * there), or from 1/65536 to 0.5. What is lost within it is not sent again, so a call ends without
 * waiting for the last packets; a call that returns GRADWIRE_OK has at least the rest. Of a message
 * the stricter of both ends' bounds rules, and who names none wants all. Of a collective it is a
 * bound on what is missing of each rank's values; `bound_pull` is on the results, and a result that
 * is missing at one rank is missing at all, as zeros without contributors: all ranks have the same
 * bytes. (Via ina nothing is missing of results.) An average is that of the ranks that have
 * contributed, fragment by fragment; a sum is of these alone. All ranks bound a collective or none
 * does, and bound its results or none does.
 * docs/bounded-loss.md.
 */
struct gradwire_call_options {
    size_t size;           /* of this structure, as gradwire_call_options_init() was told */
    enum gradwire_via via; /* of all-reduce, reduce and barrier; others take no notice of it */
    double bound;
    double bound_pull;
    uint32_t layer, layers; /* of `layers` layers, counted from the front, the tensor is of this
                               one: by that switches serve it earlier or later. layers 0: it is
                               served last */
    enum gradwire_importance importance;
    int important_first; /* 1: these leave before the others; 0: all in a random order */
    int keeps_own; /* 1, for experiments: of a result that is missing of an all-reduce a rank keeps
                      its own values, as published (DLCP, Appendix A), instead of zeros at all
                      ranks. So the ranks' bytes differ, and replicas that apply them drift apart.
                      Via ring these values have those of ranks before it added; an all-gather or
                      broadcast leaves memory as it was. Equal on all ranks */
    gradwire_worth *worth;        /* of GRADWIRE_IMPORTANCE_WORTH */
    void *worth_context;          /* handed to it */
    struct gradwire_parts *parts; /* NULL: the caller does not want to know */
};

/* Version of the library, as "1.2.3". */
GRADWIRE_API const char *gradwire_version(void);

/*
 * Fills `options` with defaults and what the environment says: GRADWIRE_JOIN, _SERVER, _SWITCH,
 * _JOB, _BIND, _KEY_FILE, _INSECURE_KEY_FILE (anything is 1), _VIA, _ANNOUNCE, _SIGNALS, _SPIN,
 * _MULTICAST, _THREADS; rank and world of torchrun (RANK, WORLD_SIZE, and MASTER_ADDR with
 * MASTER_PORT + 1 as `join`), mpirun (OMPI_COMM_WORLD_*, PMI_*) or srun (SLURM_PROCID,
 * SLURM_NTASKS). `size` is sizeof(*options).
 */
GRADWIRE_API void gradwire_options_init(struct gradwire_options *options, size_t size);

/*
 * Joins the job and waits until all ranks have. On success *job is to be closed. Fails with
 * GRADWIRE_ERR_TIMED_OUT when somebody does not come within the deadline; the line names whom we
 * waited for.
 */
GRADWIRE_API int gradwire_open(const struct gradwire_options *options, gradwire **job);

/*
 * Leaves the job and frees everything. Calls in work fail, and with them the job of the others.
 * Waits at most the deadline, so that the others have what they need from us. NULL is allowed.
 */
GRADWIRE_API void gradwire_close(gradwire *job);

GRADWIRE_API int gradwire_rank(const gradwire *job);
GRADWIRE_API int gradwire_world(const gradwire *job);

/* Fills `options` with defaults. `size` is sizeof(*options). */
GRADWIRE_API void gradwire_call_options_init(struct gradwire_call_options *options, size_t size);

/* Fragments that a call of `count` elements (of a message: bytes, as GRADWIRE_UINT8) via `via` has;
 * GRADWIRE_VIA_DEFAULT is the job's. All but all-reduces go by ring. An all-gather has so many for
 * each rank: parts of ranks begin with a fragment. 0 of an argument that is out of its range, of
 * which gradwire_last_error() tells. */
GRADWIRE_API size_t gradwire_fragments(const gradwire *job, size_t count, enum gradwire_type type,
                                       enum gradwire_via via);

/* Waits until the call has ended, and returns how. Each call is to be waited for once. */
GRADWIRE_API int gradwire_wait(gradwire *job, gradwire_call call);

/* As gradwire_wait() if the call has ended: *done is 1; else 0 at once, with *done 0. */
GRADWIRE_API int gradwire_test(gradwire *job, gradwire_call call, int *done);

/*
 * A descriptor for poll() and epoll: readable as long as a call has ended of which neither
 * gradwire_test() nor gradwire_wait() has told yet; so where it is readable, test the calls in
 * work. Now and then it is readable for nothing, until the next gradwire_test(). It is the job's:
 * do not read from it or close it. Negative: an error.
 */
GRADWIRE_API int gradwire_fd(gradwire *job);

/*
 * Collective. out[i] = in[i] of all ranks, summed or what `op` says, for `count` elements; the same
 * bits on every rank. `in` may be `out`. Via ina and ps floats are added as integers in units of
 * 2^-27: the error is at most world * 2^-28 for values up to 16, whatever the order of arrival;
 * what does not fit is added as floats in rank order. By ring floats are added as they are, in an
 * order that depends on the place in the array, and `threads`, alone (docs/numbers.md). Integers
 * are exact, or the job fails with GRADWIRE_ERR_OVERFLOW.
 */
GRADWIRE_API int gradwire_allreduce(gradwire *job, const void *in, void *out, size_t count,
                                    enum gradwire_type type, enum gradwire_op op);
GRADWIRE_API int gradwire_allreduce_start(gradwire *job, const void *in, void *out, size_t count,
                                          enum gradwire_type type, enum gradwire_op op,
                                          gradwire_call *call);
GRADWIRE_API int gradwire_allreduce_with(gradwire *job, const void *in, void *out, size_t count,
                                         enum gradwire_type type, enum gradwire_op op,
                                         const struct gradwire_call_options *options,
                                         gradwire_call *call);

/* Collective. As gradwire_allreduce(), but only `root` gets the result; elsewhere `out` is not
 * used, and may be NULL. */
GRADWIRE_API int gradwire_reduce(gradwire *job, const void *in, void *out, size_t count,
                                 enum gradwire_type type, enum gradwire_op op, int root);
GRADWIRE_API int gradwire_reduce_start(gradwire *job, const void *in, void *out, size_t count,
                                       enum gradwire_type type, enum gradwire_op op, int root,
                                       gradwire_call *call);
GRADWIRE_API int gradwire_reduce_with(gradwire *job, const void *in, void *out, size_t count,
                                      enum gradwire_type type, enum gradwire_op op, int root,
                                      const struct gradwire_call_options *options,
                                      gradwire_call *call);

/* Collective. Every rank gets the `count` elements at root's `data`, bit by bit. */
GRADWIRE_API int gradwire_broadcast(gradwire *job, void *data, size_t count,
                                    enum gradwire_type type, int root);
GRADWIRE_API int gradwire_broadcast_start(gradwire *job, void *data, size_t count,
                                          enum gradwire_type type, int root, gradwire_call *call);
GRADWIRE_API int gradwire_broadcast_with(gradwire *job, void *data, size_t count,
                                         enum gradwire_type type, int root,
                                         const struct gradwire_call_options *options,
                                         gradwire_call *call);

/* Collective. out[r * count + i] = in[i] of rank r, bit by bit; `out` holds world * count elements.
 * `in` may be this rank's own place there. */
GRADWIRE_API int gradwire_allgather(gradwire *job, const void *in, void *out, size_t count,
                                    enum gradwire_type type);
GRADWIRE_API int gradwire_allgather_start(gradwire *job, const void *in, void *out, size_t count,
                                          enum gradwire_type type, gradwire_call *call);
GRADWIRE_API int gradwire_allgather_with(gradwire *job, const void *in, void *out, size_t count,
                                         enum gradwire_type type,
                                         const struct gradwire_call_options *options,
                                         gradwire_call *call);

/* Collective. out[i] = in[rank * count + i] of all ranks, summed or what `op` says; `in` holds
 * world * count elements. `out` may be this rank's own place there. */
GRADWIRE_API int gradwire_reduce_scatter(gradwire *job, const void *in, void *out, size_t count,
                                         enum gradwire_type type, enum gradwire_op op);
GRADWIRE_API int gradwire_reduce_scatter_start(gradwire *job, const void *in, void *out,
                                               size_t count, enum gradwire_type type,
                                               enum gradwire_op op, gradwire_call *call);
GRADWIRE_API int gradwire_reduce_scatter_with(gradwire *job, const void *in, void *out,
                                              size_t count, enum gradwire_type type,
                                              enum gradwire_op op,
                                              const struct gradwire_call_options *options,
                                              gradwire_call *call);

/* Collective. Ends when all ranks have started it. */
GRADWIRE_API int gradwire_barrier(gradwire *job);
GRADWIRE_API int gradwire_barrier_start(gradwire *job, gradwire_call *call);
GRADWIRE_API int gradwire_barrier_with(gradwire *job, const struct gradwire_call_options *options,
                                       gradwire_call *call);

/*
 * Sends `bytes` bytes, at least one, to rank `to`, and ends when it has them all; the rank has to
 * call gradwire_receive() with the same tag, 0 to 2^24 - 1, and at least as much room. Messages
 * between two ranks that are under way at the same time need different tags: a second receive of
 * the same rank and tag is refused with GRADWIRE_ERR_INVALID.
 */
GRADWIRE_API int gradwire_send(gradwire *job, const void *data, size_t bytes, int to, uint32_t tag);
GRADWIRE_API int gradwire_send_start(gradwire *job, const void *data, size_t bytes, int to,
                                     uint32_t tag, gradwire_call *call);
GRADWIRE_API int gradwire_send_with(gradwire *job, const void *data, size_t bytes, int to,
                                    uint32_t tag, const struct gradwire_call_options *options,
                                    gradwire_call *call);

/* Ends when a message of at most `bytes` bytes has come from rank `from`. A longer one fails the
 * job at once; the line at the receiver names both sizes. */
GRADWIRE_API int gradwire_receive(gradwire *job, void *data, size_t bytes, int from, uint32_t tag);
GRADWIRE_API int gradwire_receive_start(gradwire *job, void *data, size_t bytes, int from,
                                        uint32_t tag, gradwire_call *call);
GRADWIRE_API int gradwire_receive_with(gradwire *job, void *data, size_t bytes, int from,
                                       uint32_t tag, const struct gradwire_call_options *options,
                                       gradwire_call *call);

/*
 * A parameter server that all ranks are together: each keeps a part of the values, which are arrays
 * of one type with a number, their key. A push adds `count` elements to the value of `key`, which
 * the first push of all ranks makes, and ends when they have been added: exactly once, whatever the
 * network does. Pushes and pulls of one rank at one key are done in the order of the calls, started
 * ones too; those of other ranks whenever they arrive. A pull gets the value as it is then: all of
 * a push, or nothing of it. The complete sum is what one gets behind a barrier:
 *
 *     gradwire_push(job, key, gradients, count, GRADWIRE_FLOAT32);
 *     gradwire_barrier(job);
 *     gradwire_pull(job, key, sums, count, GRADWIRE_FLOAT32);
 *
 * All ranks use a key with the same count and type. A value lasts until the rank that keeps it
 * closes the job: before the end all meet at a barrier. Nobody else has to call anything.
 *
 * 16-bit floats are kept and added as float32, and rounded to the type when they are pulled. Sums
 * of floats are rounded to nearest one by one, in the order of arrival, so the last bits of a sum
 * of more than two pushes may differ from run to run; all who pull it then get the same.
 *
 * The rank that keeps a value is splitmix64's finaliser of the key, modulo `world`. Besides the
 * value (4 bytes an element, or as many as the type has) it needs memory for each push or pull of
 * more than 1000 bytes that is under way. Size: at most 2^36 bytes of data.
 *
 * These errors are of the call alone; the value is as it was, and the job goes on:
 *   GRADWIRE_ERR_INVALID    an argument; a count or type that is not the value's (the line names
 *                           both); a pull of a key that nobody has pushed
 *   GRADWIRE_ERR_OVERFLOW   a sum of integers does not fit their type
 *   GRADWIRE_ERR_NO_MEMORY  the rank that the line names has none for the value
 *   GRADWIRE_ERR_BUSY
 */
GRADWIRE_API int gradwire_push(gradwire *job, uint64_t key, const void *data, size_t count,
                               enum gradwire_type type);
GRADWIRE_API int gradwire_push_start(gradwire *job, uint64_t key, const void *data, size_t count,
                                     enum gradwire_type type, gradwire_call *call);
GRADWIRE_API int gradwire_push_with(gradwire *job, uint64_t key, const void *data, size_t count,
                                    enum gradwire_type type,
                                    const struct gradwire_call_options *options,
                                    gradwire_call *call);

/* Copies the value of `key` to `data`; see gradwire_push(). */
GRADWIRE_API int gradwire_pull(gradwire *job, uint64_t key, void *data, size_t count,
                               enum gradwire_type type);
GRADWIRE_API int gradwire_pull_start(gradwire *job, uint64_t key, void *data, size_t count,
                                     enum gradwire_type type, gradwire_call *call);
GRADWIRE_API int gradwire_pull_with(gradwire *job, uint64_t key, void *data, size_t count,
                                    enum gradwire_type type,
                                    const struct gradwire_call_options *options,
                                    gradwire_call *call);

GRADWIRE_API int gradwire_get_stats(const gradwire *job, struct gradwire_stats *stats);

/* One line about the last error in this thread; "" when there was none. */
GRADWIRE_API const char *gradwire_last_error(void);

/* Text of an error, without full stop. */
GRADWIRE_API const char *gradwire_error_text(int error);

#ifdef __cplusplus
}
#endif

#endif
