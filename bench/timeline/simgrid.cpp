// Flows of the timeline's network against SimGrid's fluid model: finishing times of random sets of transfers.
//
//     simgrid [SETS] [SEED] [SLACK]
//
// Each set: a cluster of ports as hecatec simulates it, and transfers that begin at random times. SimGrid (3.32) shares links
// by max-min fairness (model CM02, no latency, no window of TCP). Prints the largest and mean relative difference of transfers' times,
// from begin to end; ends with 1 when a time differs by more than 2 % where SLACK is 0 (the default).
#include <simgrid/s4u.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include "passes/timeline/network.h"
}

namespace sg4 = simgrid::s4u;

namespace {

constexpr int TRANSFERS = 200;

struct transfer_t {
    int from, to;
    double begin, bytes; // Microseconds.
};

struct case_t {
    int nodes, devices;            // On one node.
    double device_rate, node_rate; // Bytes per microsecond.
    std::vector<transfer_t> transfers;

    int all() const {
        return nodes * devices;
    }
};

case_t draw(unsigned seed) {
    std::mt19937 random(seed);
    const auto number = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random);
    };
    case_t drawn = {number(1, 8), number(2, 8), 100.0 * number(1, 30), 100.0 * number(1, 30), {}};
    const int count = number(1, TRANSFERS);
    for (int i = 0; i < count; i++) {
        const int from = number(0, drawn.all() - 1);
        const int to = (from + number(1, drawn.all() - 1)) % drawn.all();
        drawn.transfers.push_back({from, to, (double)number(0, 2000), 1000.0 * number(1, 1000)});
    }
    return drawn;
}

// ---- SimGrid; its engine lives once in a process

struct ports_t {
    std::vector<sg4::Link *> out, in, node_out, node_in;
};

void run_simgrid(const case_t &of, double *end) {
    const char *arguments[] = {"simgrid",
                               "--log=root.thresh:critical",
                               "--cfg=network/model:CM02",
                               "--cfg=network/TCP-gamma:0",
                               "--cfg=network/crosstraffic:0",
                               "--cfg=network/bandwidth-factor:1",
                               "--cfg=network/weight-S:0",
                               "--cfg=surf/precision:1e-9"};
    int count = sizeof arguments / sizeof *arguments;
    sg4::Engine engine(&count, const_cast<char **>(arguments));
    sg4::NetZone *zone = sg4::create_full_zone("cluster");
    std::vector<sg4::Host *> hosts;
    ports_t ports;
    const auto link = [&](const std::string &name, double rate) {
        return zone->create_link(name, rate * 1e6)->set_latency(0)->seal();
    };
    for (int d = 0; d < of.all(); d++) {
        hosts.push_back(zone->create_host("d" + std::to_string(d), 1e9));
        ports.out.push_back(link("o" + std::to_string(d), of.device_rate));
        ports.in.push_back(link("i" + std::to_string(d), of.device_rate));
    }
    for (int n = 0; n < of.nodes; n++) {
        ports.node_out.push_back(link("no" + std::to_string(n), of.node_rate));
        ports.node_in.push_back(link("ni" + std::to_string(n), of.node_rate));
    }
    for (int a = 0; a < of.all(); a++) {
        for (int b = 0; b < of.all(); b++) {
            if (a == b) continue;
            std::vector<sg4::LinkInRoute> way = {sg4::LinkInRoute(ports.out[a])};
            if (a / of.devices != b / of.devices) {
                way.emplace_back(ports.node_out[a / of.devices]);
                way.emplace_back(ports.node_in[b / of.devices]);
            }
            way.emplace_back(ports.in[b]);
            zone->add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr,
                            way, false);
        }
    }
    zone->seal();
    for (size_t i = 0; i < of.transfers.size(); i++) {
        const transfer_t &t = of.transfers[i];
        sg4::Actor::create("t" + std::to_string(i), hosts[t.from], [&hosts, &t, end, i]() {
            sg4::this_actor::sleep_until(t.begin * 1e-6);
            sg4::Comm::sendto(hosts[t.from], hosts[t.to], (uint64_t)t.bytes);
            end[i] = sg4::Engine::get_clock() * 1e6;
        });
    }
    engine.run();
}

// ---- ours

void run_network(const case_t &of, double slack, double *end) {
    const int all = of.all();
    std::vector<double> rate(2 * all, of.device_rate);
    rate.resize(2 * all + 2 * of.nodes, of.node_rate);
    hec_network *network = hec_network_create((int)rate.size(), rate.data(), slack);
    for (size_t i = 0; i < of.transfers.size(); i++) {
        const transfer_t &t = of.transfers[i];
        const int from = t.from / of.devices, to = t.to / of.devices;
        const int32_t port[] = {t.from, all + t.to, 2 * all + from, 2 * all + of.nodes + to};
        hec_network_start(network, 0, port, from == to ? 2 : 4, t.bytes, t.begin, (int32_t)i, 0);
    }
    double part[HEC_FLOW_KINDS];
    for (double next; (next = hec_network_next(network)) < INFINITY;) {
        hec_network_pass(network, next);
        for (int32_t i; (i = hec_network_done(network, part)) >= 0;) end[i] = next;
    }
    hec_network_free(network);
}

} // namespace

int main(int count, char **argument) {
    const int sets = count > 1 ? atoi(argument[1]) : 1000;
    const unsigned seed = count > 2 ? (unsigned)atoi(argument[2]) : 1;
    const double slack = count > 3 ? atof(argument[3]) : 0;
    auto *theirs = (double *)mmap(nullptr, TRANSFERS * sizeof(double), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double worst = 0, sum = 0;
    long transfers = 0;
    for (int set = 0; set < sets; set++) {
        const case_t of = draw(seed + (unsigned)set);
        std::fill(theirs, theirs + TRANSFERS, -1.0);
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            run_simgrid(of, theirs);
            _exit(0);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
            fprintf(stderr, "simgrid: set %d: SimGrid failed\n", set);
            return 2;
        }
        double ours[TRANSFERS];
        run_network(of, slack, ours);
        for (size_t i = 0; i < of.transfers.size(); i++, transfers++) {
            const double begin = of.transfers[i].begin;
            const double wrong = std::fabs(ours[i] - theirs[i]) / (theirs[i] - begin);
            sum += wrong;
            worst = std::max(worst, wrong);
        }
    }
    printf("%d sets, %ld transfers, slack %g: times differ by %.4f %% in the mean, by %.4f %% at "
           "most\n",
           sets, transfers, slack, 100 * sum / (double)transfers, 100 * worst);
    return slack == 0 && worst > 0.02;
}
