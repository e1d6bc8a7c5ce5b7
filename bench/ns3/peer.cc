/*
 * The peer for bench/compare-ns3: flows on a fat tree in ns-3, counted as Gradwire counts.
 *
 * The fabric has the nodes and links of Gradwire's topology `fat-tree` with three tiers, and the
 * flows come from the same connection matrix. What is simulated is what ns-3 offers for it: IP
 * hosts and routers with either TCP Cubic over tail-drop queues, or UDP sent at line rate into
 * queues without limit and never answered, the least work per packet that can be had there. Its
 * traffic control layer is left out, as it would only cost time.
 *
 * Routes are a table per node that maps a host to equal-cost interfaces, hashed over the flow. With
 * --routing=global they are ns-3's own, which searches the list of all networks for every packet.
 *
 * Prints one JSON object. A hop is one packet leaving one device.
 */
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "bulk.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace
{

constexpr uint32_t PAYLOAD = 4096;
constexpr uint32_t UDP_OVERHEAD = 30;          // bytes of UDP, IP and PPP headers
constexpr uint32_t FIRST_ADDRESS = 0x0a000001; // host 0; each link is a network of 4 addresses
constexpr uint32_t ADDRESSES_PER_LINK = 4;

struct Options {
    std::string flows;
    std::string transport = "tcp";
    std::string routing = "table";
    uint32_t k = 8;
    uint32_t oversubscription = 1;
    uint64_t rateGbps = 800;
    uint64_t latencyNs = 600;
    uint32_t queuePackets = 280; // of a device with TCP: about one bandwidth-delay product
    double limitSeconds = 10;    // of simulated time
};

struct Flow {
    uint32_t src;
    uint32_t dst;
    uint64_t bytes;    // to be received
    uint64_t received; // so far
};

struct Run {
    std::vector<Flow> flows;
    uint64_t hops = 0;
    uint64_t drops = 0;
    uint32_t completed = 0;
};

Run run; // ns-3 has one simulation per process, and its trace sinks are plain functions

/* The routes of one node. Packets of one flow take one path. */
class TableRouting : public Ipv4RoutingProtocol
{
  public:
    /* Adds the next host; it is reached through any of `count` interfaces from `first`. */
    void AddHost(uint32_t first, uint32_t count)
    {
        std::vector<Ptr<Ipv4Route>> set;
        for (uint32_t interface = first; interface < first + count; interface++) {
            Ptr<Ipv4Route> route = Create<Ipv4Route>();
            route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
            route->SetSource(m_ipv4->GetAddress(interface, 0).GetLocal());
            route->SetGateway(Ipv4Address("192.0.2.1")); // of nobody: a link has one other end
            set.push_back(route);
        }
        m_sets.push_back(set);
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
        m_salt = ipv4->GetObject<Node>()->GetId();
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header &header, Ptr<NetDevice>,
                               Socket::SocketErrno &error) override
    {
        error = Socket::ERROR_NOTERROR;
        return Choose(header, 0); // a host has one interface
    }

    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header &header, Ptr<const NetDevice> device,
                    UnicastForwardCallback forward, MulticastForwardCallback,
                    LocalDeliverCallback deliver, ErrorCallback) override
    {
        uint32_t interface = m_ipv4->GetInterfaceForDevice(device);
        if (m_ipv4->GetAddress(interface, 0).GetLocal() == header.GetDestination()) {
            deliver(packet, header, interface);
            return true;
        }
        uint32_t ports = 0; // source and destination, at the start of both transports' headers
        packet->CopyData(reinterpret_cast<uint8_t *>(&ports), sizeof(ports));
        forward(Choose(header, ports), packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }
    void NotifyInterfaceDown(uint32_t) override
    {
    }
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  private:
    Ptr<Ipv4Route> Choose(const Ipv4Header &header, uint32_t ports) const
    {
        uint32_t destination = header.GetDestination().Get();
        const auto &set = m_sets[(destination - FIRST_ADDRESS) / ADDRESSES_PER_LINK];
        uint64_t x = (uint64_t(header.GetSource().Get()) << 32 | destination) ^
                     uint64_t(ports) << 16 ^ m_salt << 48;
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        return set[(x >> 32) % set.size()];
    }

    Ptr<Ipv4> m_ipv4;
    uint64_t m_salt = 0;
    std::vector<std::vector<Ptr<Ipv4Route>>> m_sets; // by host
};

/* Nodes and links in the order of src/topo/fat_tree.c: a host's number is its first link's. */
class FatTree
{
  public:
    explicit FatTree(const Options &options)
        : m_half(options.k / 2), m_coresPerAgg(m_half / options.oversubscription),
          m_hosts(m_half * m_half * options.k), m_tors(m_half * options.k), m_aggs(m_tors)
    {
        m_nodes.Create(m_hosts + m_tors + m_aggs + m_half * m_coresPerAgg);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(m_nodes);
        m_link.SetDeviceAttribute("DataRate",
                                  DataRateValue(DataRate(options.rateGbps * 1000000000)));
        m_link.SetDeviceAttribute("Mtu", UintegerValue(DEVICE_MTU));
        m_link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(options.latencyNs)));
        uint32_t packets = options.transport == "udp" ? UINT32_MAX : options.queuePackets;
        m_link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
        m_link.DisableFlowControl();
        m_addresses.SetBase("10.0.0.0", "255.255.255.252");
        AddLinks();
        if (options.routing == "global")
            Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        else
            AddTables();
    }

    uint32_t HostCount() const
    {
        return m_hosts;
    }

    Ptr<Node> Host(uint32_t host) const
    {
        return m_nodes.Get(host);
    }

  private:
    void AddLink(uint32_t a, uint32_t b)
    {
        NetDeviceContainer devices = m_link.Install(m_nodes.Get(a), m_nodes.Get(b));
        m_addresses.Assign(devices);
        m_addresses.NewNetwork();
    }

    void AddLinks()
    {
        uint32_t firstTor = m_hosts, firstAgg = firstTor + m_tors, firstCore = firstAgg + m_aggs;
        for (uint32_t host = 0; host < m_hosts; host++)
            AddLink(host, firstTor + host / m_half);
        for (uint32_t tor = 0; tor < m_tors; tor++)
            for (uint32_t a = 0; a < m_half; a++)
                AddLink(firstTor + tor, firstAgg + tor / m_half * m_half + a);
        for (uint32_t agg = 0; agg < m_aggs; agg++)
            for (uint32_t c = 0; c < m_coresPerAgg; c++)
                AddLink(firstAgg + agg, firstCore + agg % m_half * m_coresPerAgg + c);
    }

    /* Interface 0 is the loopback; then the links down come before those up, in their order. */
    void AddTables()
    {
        uint32_t firstTor = m_hosts, firstAgg = firstTor + m_tors, firstCore = firstAgg + m_aggs;
        for (uint32_t node = 0; node < m_nodes.GetN(); node++) {
            Ptr<TableRouting> table = CreateObject<TableRouting>();
            m_nodes.Get(node)->GetObject<Ipv4>()->SetRoutingProtocol(table);
            for (uint32_t host = 0; host < m_hosts; host++) {
                uint32_t tor = host / m_half, pod = tor / m_half;
                if (node < firstTor)
                    table->AddHost(1, 1);
                else if (node < firstAgg && node - firstTor == tor)
                    table->AddHost(1 + host % m_half, 1);
                else if (node < firstAgg)
                    table->AddHost(1 + m_half, m_half);
                else if (node < firstCore && (node - firstAgg) / m_half == pod)
                    table->AddHost(1 + tor % m_half, 1);
                else if (node < firstCore)
                    table->AddHost(1 + m_half, m_coresPerAgg);
                else
                    table->AddHost(1 + pod, 1);
            }
        }
    }

    uint32_t m_half, m_coresPerAgg;
    uint32_t m_hosts, m_tors, m_aggs;
    NodeContainer m_nodes;
    PointToPointHelper m_link;
    Ipv4AddressHelper m_addresses;
};

/* Lines like `0->13 id 1 start 0 size 2000000`; all others are headers. */
void ReadFlows(const std::string &file, uint32_t hostCount)
{
    std::ifstream in(file);
    if (!in)
        Fail(file + ": cannot be read");
    std::string line;
    while (std::getline(in, line)) {
        unsigned src, dst, id;
        unsigned long long start, size;
        if (line.find("->") == std::string::npos)
            continue;
        if (std::sscanf(line.c_str(), "%u->%u id %u start %llu size %llu", &src, &dst, &id, &start,
                        &size) != 5 ||
            start != 0 || size == 0 || src >= hostCount || dst >= hostCount)
            Fail(file + ": not understood: " + line);
        run.flows.push_back({src, dst, size, 0});
    }
}

void CountHop(Ptr<const Packet>)
{
    run.hops++;
}

void CountDrop(Ptr<const Packet>)
{
    run.drops++;
}

void CountBytes(Flow *flow, Ptr<const Packet> packet, const Address &)
{
    if (!Completes(flow->received, flow->bytes, packet->GetSize()))
        return;
    if (++run.completed == run.flows.size())
        Simulator::Stop();
}

void StartUdp(Flow &flow, Ptr<Node> src, const Address &to, const Options &options)
{
    uint64_t packets = (flow.bytes + PAYLOAD - 1) / PAYLOAD;
    UdpClientHelper sender(to);
    sender.SetAttribute("MaxPackets", UintegerValue(packets));
    sender.SetAttribute("PacketSize", UintegerValue(PAYLOAD));
    sender.SetAttribute("Interval",
                        TimeValue(PicoSeconds((PAYLOAD + UDP_OVERHEAD) * 8000 / options.rateGbps)));
    sender.Install(src);
    flow.bytes = packets * PAYLOAD;
}

void StartFlows(const FatTree &tree, const Options &options)
{
    for (uint32_t i = 0; i < run.flows.size(); i++) {
        Flow &flow = run.flows[i];
        InetSocketAddress to(Ipv4Address(FIRST_ADDRESS + flow.dst * ADDRESSES_PER_LINK),
                             FIRST_PORT + i);
        Ptr<Application> receiver = InstallReceiver(
            tree.Host(flow.dst), to,
            options.transport == "tcp" ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory");
        receiver->TraceConnectWithoutContext("Rx", MakeBoundCallback(&CountBytes, &flow));
        if (options.transport == "tcp")
            InstallSender(tree.Host(flow.src), to, flow.bytes, PAYLOAD);
        else
            StartUdp(flow, tree.Host(flow.src), to, options);
    }
    const std::string device = "/NodeList/*/DeviceList/*/$ns3::PointToPointNetDevice/";
    Config::ConnectWithoutContext(device + "PhyTxBegin", MakeCallback(&CountHop));
    Config::ConnectWithoutContext(device + "MacTxDrop", MakeCallback(&CountDrop));
}

void SetDefaults()
{
    SetTcpDefaults(PAYLOAD);
    Config::SetDefault("ns3::UdpSocket::RcvBufSize", UintegerValue(SOCKET_BUFFER));
    /* The smallest that the stack's clock of 1 ms allows; otherwise a loss idles for a second. */
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(1)));
    /* One route per flow, chosen at random: as near as global routing comes to ECMP. */
    Config::SetDefault("ns3::Ipv4GlobalRouting::RandomEcmpRouting", BooleanValue(true));
}

Options ReadOptions(int argc, char **argv)
{
    Options options;
    CommandLine line(__FILE__);
    line.AddValue("flows", "connection matrix: the flows", options.flows);
    line.AddValue("transport", "tcp or udp", options.transport);
    line.AddValue("routing", "table or global", options.routing);
    line.AddValue("k", "ports of a switch", options.k);
    line.AddValue("oversubscription", "between aggregation and core", options.oversubscription);
    line.AddValue("rate", "of every link, Gb/s", options.rateGbps);
    line.AddValue("latency", "of every link, ns", options.latencyNs);
    line.AddValue("queue", "packets that a device queues, with TCP", options.queuePackets);
    line.AddValue("limit", "simulated seconds after which to give up", options.limitSeconds);
    line.Parse(argc, argv);
    if (options.transport != "tcp" && options.transport != "udp")
        Fail("--transport=" + options.transport + ": expected tcp or udp");
    if (options.routing != "table" && options.routing != "global")
        Fail("--routing=" + options.routing + ": expected table or global");
    if (options.k < 2 || options.k % 2 != 0 || options.oversubscription == 0 ||
        options.k / 2 % options.oversubscription != 0)
        Fail("k must be even, and oversubscription a divisor of k/2");
    return options;
}

double Seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

} // namespace

int main(int argc, char **argv)
{
    SetDefaults();
    Options options = ReadOptions(argc, argv);
    double begin = Seconds();
    FatTree tree(options);
    ReadFlows(options.flows, tree.HostCount());
    StartFlows(tree, options);
    double built = Seconds();
    Simulator::Stop(ns3::Seconds(options.limitSeconds));
    Simulator::Run();
    double ended = Seconds();
    std::cout << "{\"flows\": " << run.flows.size() << ", \"completed\": " << run.completed
              << ", \"sim_us\": " << Simulator::Now().GetMicroSeconds()
              << ", \"hops\": " << run.hops << ", \"drops\": " << run.drops
              << ", \"setup_s\": " << built - begin << ", \"wall_s\": " << ended - built << "}"
              << std::endl;
    Simulator::Destroy();
    return run.completed == run.flows.size() ? 0 : 1;
}
