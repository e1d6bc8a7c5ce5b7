/* From a datagram to a packet; see datagram.h. */
#include "net/datagram.h"

#include <string.h>

#include "base/error.h"
#include "core/blast_hail.h"
#include "core/codec.h"
#include "wire/attach.h"

enum gw_datagram_kind gw_datagram_look(struct gw_datapath *datapath, const uint8_t *bytes,
                                       uint32_t length, uint32_t count)
{
    if (length < GW_WIRE_HDR_MIN) {
        datapath->stats.runts += count;
        return GW_DATAGRAM_REFUSED;
    }
    if (gw_attach_is(bytes, length))
        return GW_DATAGRAM_CONTROL;
    if (gw_wire_version(bytes, length) != GW_WIRE_VERSION) {
        datapath->stats.wrong_version += count;
        return GW_DATAGRAM_REFUSED;
    }
    return GW_DATAGRAM_PACKET;
}

bool gw_datagram_is_from(const struct gw_datapath_peer *peer, const struct gw_sock_addr *from)
{
    uint16_t entropy = (uint16_t)(gw_sock_addr_port(from) - gw_sock_addr_port(&peer->addr));
    return peer->addr.length == from->length && gw_sock_addr_is_same_host(&peer->addr, from) &&
           entropy < peer->entropies;
}

const struct gw_datapath_peer *gw_datagram_sender(const struct gw_datapath *datapath,
                                                  uint64_t cookie, const struct gw_sock_addr *from)
{
    const struct gw_datapath_peer *peer = gw_datapath_peer(datapath, (uint16_t)cookie);
    return peer && peer->rx_cookie == cookie && gw_datagram_is_from(peer, from) ? peer : NULL;
}

static void count_refusal(struct gw_datapath_stats *stats, int code)
{
    if (code == GW_ERR_VERSION)
        stats->wrong_version++;
    else if (code == GW_ERR_UNKNOWN)
        stats->wrong_cookie++;
    else
        stats->malformed++;
}

/* Judges it by its authentication, the last of its bytes, and decrypts it if that is agreed. */
static bool is_genuine(struct gw_datapath_stats *stats, const struct gw_datagram *datagram)
{
    struct gw_auth *auth = datagram->peer->auth;
    const struct iovec covered = {datagram->bytes, datagram->length - GW_AUTH_SIZE};
    enum gw_auth_verdict verdict =
        auth->encrypts ? gw_auth_decrypt(auth, datagram->bytes, (uint32_t)covered.iov_len)
                       : gw_auth_open(auth, &covered, 1, datagram->bytes + covered.iov_len);
    stats->forged += verdict == GW_AUTH_FORGED;
    stats->repeated += verdict == GW_AUTH_REPEATED || verdict == GW_AUTH_OLD;
    return verdict == GW_AUTH_GENUINE;
}

/* Whether it announces a message without payload. Only simulations have those; here it would take a
 * receiver's place, and never fill it. */
static bool announces_nothing(const struct gw_pkt *pkt)
{
    return pkt->q.kind == GW_PKT_HAIL && pkt->hail.op == GW_HAIL_RENDEZVOUS &&
           pkt->hail.marks & GW_HAIL_BARE;
}

/* Gives the packet its payload of `size` bytes, which begins at `from`. */
static bool take_payload(struct gw_datapath *datapath, const struct gw_datagram *datagram,
                         uint32_t from, uint32_t size, struct gw_pkt *pkt)
{
    struct gw_buf_pool *bufs = datapath->cfg.pool->bufs;
    if (size > datapath->cfg.mtu) { /* behind it there may be room for the authentication alone */
        datapath->stats.malformed++;
        return false;
    }
    uint32_t fresh = gw_buf_claim(bufs);
    if (fresh == GW_BUF_NONE) {
        datapath->stats.no_room++;
        return false;
    }
    if (datagram->buf) {
        pkt->buf = *datagram->buf;
        *datagram->buf = fresh;
    } else {
        memcpy(gw_buf_bytes(bufs, fresh), datagram->bytes + from, size);
        pkt->buf = fresh;
    }
    return true;
}

/* The header is copied in one piece where there are bytes enough: pieces of a length that is not
 * known cost as much as all of decoding. */
static void fill_frame(struct gw_frame *frame, const struct gw_datagram *datagram, uint32_t length)
{
    if (length >= sizeof(frame->hdr))
        memcpy(frame->hdr, datagram->bytes, sizeof(frame->hdr));
    else
        memcpy(frame->hdr, datagram->bytes, length);
    frame->length = length;
    frame->entropy = datagram->entropy;
    frame->tos = datagram->tos;
}

static bool is_like_before(const struct gw_datagram *datagram, struct gw_pkt *pkt)
{
    return datagram->before && datagram->length == datagram->before_length &&
           gw_codec_decode_like(datagram->bytes, datagram->before, datagram->before_bytes, pkt);
}

/* Makes the packet of what has a header at least. Returns 0, with the bytes of the header in *size,
 * or why it is refused. */
static int decode(const struct gw_datapath *datapath, const struct gw_datagram *datagram,
                  uint32_t length, gw_time now, struct gw_pkt *pkt, uint32_t *size)
{
    struct gw_frame frame;
    struct gw_codec codec = {.cookie = datagram->cookie,
                             .overhead = datapath->overhead - GW_WIRE_DATA_SIZE};
    fill_frame(&frame, datagram, length);
    int code = gw_codec_decode(&codec, &frame, now, pkt);
    *size = frame.hdr_size;
    return code == GW_OK && length == *size && announces_nothing(pkt) ? GW_ERR_MALFORMED : code;
}

struct gw_pkt *gw_datagram_take(struct gw_datapath *datapath, struct gw_datagram *datagram,
                                gw_time now)
{
    struct gw_pkt_pool *pool = datapath->cfg.pool;
    uint32_t tail = datagram->peer->auth ? GW_AUTH_SIZE : 0, size = GW_WIRE_DATA_SIZE;
    if (datagram->length < GW_WIRE_HDR_MIN + tail) {
        datapath->stats.runts++;
        return NULL;
    }
    if (tail && !is_genuine(&datapath->stats, datagram))
        return NULL;
    struct gw_pkt *pkt = gw_pkt_claim(pool);
    if (!pkt) {
        datapath->stats.no_room++;
        return NULL;
    }
    uint32_t length = datagram->length - tail;
    bool is_like = is_like_before(datagram, pkt);
    int code = is_like ? GW_OK : decode(datapath, datagram, length, now, pkt, &size);
    if (code)
        count_refusal(&datapath->stats, code);
    if (code || (length > size && !take_payload(datapath, datagram, size, length - size, pkt))) {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(pool, pkt);
        return NULL;
    }
    if (!is_like) {
        datagram->before = pkt;
        datagram->before_bytes = datagram->bytes;
        datagram->before_length = datagram->length;
    }
    return pkt;
}

uint32_t gw_datagram_take_alike(struct gw_datapath *datapath, const struct gw_datagram *datagram,
                                uint32_t *bufs, uint32_t count, struct gw_pkt **pkts)
{
    struct gw_pkt_pool *pool = datapath->cfg.pool;
    uint32_t taken = 0;
    if (!datagram->before || datagram->before_length <= GW_WIRE_DATA_SIZE || datagram->peer->auth)
        return 0;
    for (; taken < count; taken++) {
        const uint8_t *hdr = gw_buf_bytes(pool->bufs, bufs[taken]) - GW_WIRE_DATA_SIZE;
        struct gw_pkt *pkt = gw_pkt_claim(pool);
        if (!pkt)
            break;
        bool is_like = gw_codec_decode_like(hdr, datagram->before, datagram->before_bytes, pkt);
        uint32_t fresh = is_like ? gw_buf_claim(pool->bufs) : GW_BUF_NONE;
        if (fresh == GW_BUF_NONE) {
            gw_pkt_release(pool, pkt);
            break;
        }
        pkt->buf = bufs[taken]; /* as long as that of `before`, which was looked at */
        bufs[taken] = fresh;
        pkts[taken] = pkt;
    }
    return taken;
}
