/*
 * The peer for the TCP part of bench/compare-ns3: long flows of ns-3's TCP over one full queue.
 *
 * A dumbbell of hosts in pairs around two routers, or a star in which all but host 0 send to it.
 * All links have the same rate and latency. The queue in front of the bottleneck is ns-3's RED
 * queue discipline made a step: the instantaneous length (QW = 1) at or above the threshold marks,
 * below it does not. The device behind it holds one more packet, which the threshold allows for:
 * Gradwire's queue is both together, with the arrival itself, without the packet on the wire.
 *
 * Each flow is a line `source destination start_ps bytes` of the file --flows. --queue names a file
 * for samples of that queue in packets, one per line.
 *
 * Prints one JSON object: completion times from the first transmission of data to the last byte's
 * arrival at the receiver, marks and drops of the queue.
 */
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "bulk.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

constexpr uint32_t SEGMENT = 1460; // IP, TCP with timestamps and PPP add 54 bytes

struct Options {
    std::string flows;
    std::string queue;
    std::string transport = "TcpDctcp";
    std::string topology = "dumbbell";
    uint32_t pairs = 4;
    double rateGbps = 10;
    double latencyUs = 15;
    uint32_t mark = 65;      // a queue longer than this many packets marks
    uint32_t capacity = 260; // packets
    double rtoMinMs = 10;
    double sampleUs = 15;
    double limitMs = 100;
};

struct Flow {
    uint32_t src;
    uint32_t dst;
    uint64_t startPs;
    uint64_t bytes;
    uint64_t received = 0;
    Time firstData = Time::Max();
    Time end = Time::Max();
};

struct Run {
    std::vector<Flow> flows;
    uint32_t completed = 0;
    std::ofstream samples;
    Ptr<QueueDisc> disc;
    Ptr<Queue<Packet>> device;
    Time sample;
};

Run run; // ns-3 has one simulation per process, and its trace sinks are plain functions

void SetDefaults(const Options &options)
{
    SetTcpDefaults(SEGMENT);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + options.transport)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    Config::SetDefault("ns3::TcpSocketBase::MinRto",
                       TimeValue(MicroSeconds(uint64_t(options.rtoMinMs * 1000))));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::RedQueueDisc::UseEcn", BooleanValue(true));
    Config::SetDefault("ns3::RedQueueDisc::UseHardDrop", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::Gentle", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::MeanPktSize", UintegerValue(SEGMENT + 54));
    Config::SetDefault("ns3::RedQueueDisc::QW", DoubleValue(1));
    Config::SetDefault("ns3::RedQueueDisc::MinTh", DoubleValue(options.mark - 1.5));
    Config::SetDefault("ns3::RedQueueDisc::MaxTh", DoubleValue(options.mark - 1.0));
    Config::SetDefault("ns3::RedQueueDisc::MaxSize",
                       QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, options.capacity - 1)));
}

/* One link; returns the device of `a`. The address of b's end is 10.i.j.2. */
Ptr<PointToPointNetDevice> Connect(PointToPointHelper &link, Ipv4AddressHelper &addresses,
                                   TrafficControlHelper &control, Ptr<Node> a, Ptr<Node> b)
{
    NetDeviceContainer devices = link.Install(a, b);
    control.Install(devices);
    addresses.Assign(devices);
    addresses.NewNetwork();
    return DynamicCast<PointToPointNetDevice>(devices.Get(0));
}

/* Hosts first, then routers; sets the queue to be watched. */
NodeContainer BuildNetwork(const Options &options)
{
    const bool star = options.topology == "star";
    const uint32_t hosts = star ? options.pairs + 1 : 2 * options.pairs;
    NodeContainer nodes;
    nodes.Create(hosts + (star ? 1 : 2));
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(options.rateGbps * 1e9))));
    link.SetDeviceAttribute("Mtu", UintegerValue(DEVICE_MTU));
    link.SetChannelAttribute("Delay", TimeValue(PicoSeconds(uint64_t(options.latencyUs * 1e6))));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
    TrafficControlHelper plain, marking;
    plain.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("100000p"));
    marking.SetRootQueueDisc("ns3::RedQueueDisc", "LinkBandwidth",
                             DataRateValue(DataRate(uint64_t(options.rateGbps * 1e9))));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ptr<PointToPointNetDevice> bottleneck;
    if (star)
        bottleneck = Connect(link, addresses, marking, nodes.Get(hosts), nodes.Get(0));
    for (uint32_t host = star ? 1 : 0; host < hosts; host++)
        Connect(link, addresses, plain, nodes.Get(host),
                nodes.Get(hosts + (star ? 0 : host / options.pairs)));
    if (!star)
        bottleneck = Connect(link, addresses, marking, nodes.Get(hosts), nodes.Get(hosts + 1));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    run.disc = bottleneck->GetNode()->GetObject<TrafficControlLayer>()->GetRootQueueDiscOnDevice(
        bottleneck);
    run.device = bottleneck->GetQueue();
    return nodes;
}

void ReadFlows(const std::string &file)
{
    std::ifstream in(file);
    if (!in)
        Fail(file + ": cannot be read");
    Flow flow;
    while (in >> flow.src >> flow.dst >> flow.startPs >> flow.bytes)
        run.flows.push_back(flow);
}

void CountSent(Flow *flow, Ptr<const Packet>)
{
    flow->firstData = std::min(flow->firstData, Simulator::Now());
}

void CountReceived(Flow *flow, Ptr<const Packet> packet, const Address &)
{
    if (!Completes(flow->received, flow->bytes, packet->GetSize()))
        return;
    flow->end = Simulator::Now();
    if (++run.completed == run.flows.size())
        Simulator::Stop();
}

void StartFlows(const NodeContainer &nodes)
{
    for (uint32_t i = 0; i < run.flows.size(); i++) {
        Flow &flow = run.flows[i];
        Ptr<Ipv4> ipv4 = nodes.Get(flow.dst)->GetObject<Ipv4>();
        InetSocketAddress to(ipv4->GetAddress(1, 0).GetLocal(), FIRST_PORT + i);
        InstallReceiver(nodes.Get(flow.dst), to, "ns3::TcpSocketFactory")
            ->TraceConnectWithoutContext("Rx", MakeBoundCallback(&CountReceived, &flow));
        Ptr<Application> sender = InstallSender(nodes.Get(flow.src), to, flow.bytes, SEGMENT);
        sender->TraceConnectWithoutContext("Tx", MakeBoundCallback(&CountSent, &flow));
        sender->SetStartTime(PicoSeconds(flow.startPs));
    }
}

void Sample()
{
    run.samples << run.disc->GetNPackets() + run.device->GetNPackets() << "\n";
    Simulator::Schedule(run.sample, &Sample);
}

Options ReadOptions(int argc, char **argv)
{
    Options options;
    CommandLine line(__FILE__);
    line.AddValue("flows", "file: source destination start_ps bytes", options.flows);
    line.AddValue("queue", "file for samples of the queue", options.queue);
    line.AddValue("transport", "TcpDctcp, TcpNewReno, ...", options.transport);
    line.AddValue("topology", "dumbbell or star", options.topology);
    line.AddValue("pairs", "of hosts; in a star the senders", options.pairs);
    line.AddValue("rate", "of every link, Gb/s", options.rateGbps);
    line.AddValue("latency", "of every link, us", options.latencyUs);
    line.AddValue("mark", "packets above which the queue marks", options.mark);
    line.AddValue("capacity", "of the queue, packets", options.capacity);
    line.AddValue("rto-min", "ms", options.rtoMinMs);
    line.AddValue("sample", "us", options.sampleUs);
    line.AddValue("limit", "simulated ms after which to stop", options.limitMs);
    line.Parse(argc, argv);
    if (options.topology != "dumbbell" && options.topology != "star")
        Fail("--topology=" + options.topology + ": expected dumbbell or star");
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    Options options = ReadOptions(argc, argv);
    SetDefaults(options);
    ReadFlows(options.flows);
    NodeContainer nodes = BuildNetwork(options);
    StartFlows(nodes);
    if (!options.queue.empty()) {
        run.samples.open(options.queue);
        run.sample = PicoSeconds(uint64_t(options.sampleUs * 1e6));
        Simulator::Schedule(run.sample, &Sample);
    }
    Simulator::Stop(MicroSeconds(uint64_t(options.limitMs * 1000)));
    Simulator::Run();
    const QueueDisc::Stats &stats = run.disc->GetStats();
    std::cout << "{\"completed\": " << run.completed << ", \"fct_us\": [";
    const char *separator = "";
    for (const Flow &flow : run.flows) {
        if (flow.end == Time::Max())
            continue;
        std::cout << separator << (flow.end - flow.firstData).GetPicoSeconds() / 1e6;
        separator = ", ";
    }
    std::cout << "], \"marks\": " << stats.nTotalMarkedPackets
              << ", \"drops\": " << stats.nTotalDroppedPackets << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
