/*
 * NAME
 *     link-emulator - an IP link between two network namespaces, with the faults of a real one
 *
 * SYNOPSIS
 *     link-emulator --device=NAME --a=NAMESPACE,ADDRESS/PREFIX --b=NAMESPACE,ADDRESS/PREFIX [OPTION]...
 *
 * DESCRIPTION
 *     Creates a TUN device in each namespace and carries IP packets between them. Each direction, in order:
 *
 *       1. loses a packet at random, or a burst of them;
 *       2. drops it when it exceeds the queue (drop-tail);
 *       3. sends it at the rate of the line, after those before it;
 *       4. delivers it after the delay and the jitter, in the order sent.
 *
 *     So a packet lost at random takes no time of the line. Each direction has its own generator: the losses of one do
 *     not depend on the packets of the other.
 *
 *     Prints `up` on standard output when both devices are up. Ends on SIGTERM or SIGINT, also when the parent ends,
 *     with one JSON document on standard output; the devices are gone then. SIGUSR1 prints one, too, and restarts the
 *     measurement of times in the queue.
 *
 * OPTIONS
 *     A PAIR is one number for both directions, or two with a colon between: from a to b, from b to a.
 *
 *     --device=NAME    name of the devices, the same in both namespaces
 *     --a, --b         ends: namespace as `ip netns` knows it, IPv4 address and prefix length
 *     --rate=PAIR      Mbit/s of IP packets, 0 = no limit (default)
 *     --queue=PAIR     capacity of the queue in bytes, 0 = 65,535 packets (default)
 *     --delay=PAIR     ms one way (default 0)
 *     --jitter=PAIR    additional ms, evenly distributed from 0 (default 0)
 *     --loss=PAIR      percent (default 0)
 *     --burst=PAIR     packets lost in a row, 1 to 1,000; longer bursts are rarer: `loss` is the share of all packets
 *                      in any case (default 1)
 *     --mtu=BYTES      of the devices, 576 to 65,535 (default 1,500)
 *     --seed=NUMBER    of the random numbers (default 1)
 *
 * OUTPUT
 *     {"ab": {...}, "ba": {...}} with, for each direction: `packets` and `bytes` delivered, `lost` at random, `dropped`
 *     because the queue was full, `refused` by the receiving device, `fragments` received (parts of an IPv4 or IPv6
 *     packet), and for the times of packets in the queue, in ms, the longest `waited`, the `mean` and the 99th
 *     percentile `p99` (in steps of 0.1).
 *
 * EXIT STATUS
 *     0 ended by a signal, 1 failed (no root, no TUN, no such namespace), 2 wrong use.
 *
 * LIMITS
 *     Needs root. Timers are those of the kernel: a packet may be some 0.1 ms late. No reordering, no corruption.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1 << 16, MAX_PACKET = 65536, BATCH = 64, DEVICE_QUEUE = 4000, PRIORITY = -15, WAITS = 1 << 16 };
static const uint64_t MILLISECOND = 1000000, SECOND = 1000000000, WAIT_STEP = 100000;

struct end {
  char namespace[128];
  struct in_addr address;
  int prefix;
};

struct packet {
  uint64_t starts, leaves, arrives; /* ns: on the line from, to, and at the other end */
  int length;
  unsigned char *data;
};

struct direction {
  double rate, queue, delay, jitter, loss, burst; /* as given */
  int in, out;
  int losing; /* packets left of a burst */
  uint64_t random;
  struct packet *ring;
  unsigned delivered, sent, taken; /* ring indices, never wrapped: packets before are delivered, have left the line, are accepted */
  long queued;                     /* bytes that have not left the line */
  uint64_t line_free, last_arrival;
  uint64_t packets, bytes, lost, dropped, refused, fragments;
  uint64_t waited, waited_sum, waited_count;
  uint32_t waits[WAITS]; /* histogram of waits in steps; the last bucket holds all beyond */
};

static struct direction directions[2];
static volatile sig_atomic_t ending, asked;

static void parse(int count, char **arguments, struct end ends[2], char *device, int *mtu);
static int open_device(const struct end *end, const char *device, int mtu);
static void carry(void);
static void note_wait(struct direction *d, uint64_t wait);
static void print_counters(void);
static void fail(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

static void end_by_signal(int number) {
  (void)number;
  ending = 1;
}

static void ask_by_signal(int number) {
  (void)number;
  asked = 1;
}

int main(int count, char **arguments) {
  struct end ends[2] = {0};
  char device[IFNAMSIZ] = "";
  int mtu = 1500;
  parse(count, arguments, ends, device, &mtu);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_TIMERSLACK, 1000ul);
  setpriority(PRIO_PROCESS, 0, PRIORITY); /* a line does not wait for its users; if this fails, packets may be late on a busy machine */
  /* Signals arrive only while we wait. */
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGUSR1);
  sigprocmask(SIG_BLOCK, &ours, NULL);
  struct sigaction action = {.sa_handler = end_by_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  action.sa_handler = ask_by_signal;
  sigaction(SIGUSR1, &action, NULL);

  int a = open_device(&ends[0], device, mtu), b = open_device(&ends[1], device, mtu);
  directions[0].in = directions[1].out = a;
  directions[0].out = directions[1].in = b;
  for (int i = 0; i < 2; i++)
    if (!(directions[i].ring = calloc(RING, sizeof(struct packet)))) fail(1, "no memory");
  puts("up");
  fflush(stdout);
  while (!ending) {
    carry();
    if (asked) print_counters();
  }
  print_counters();
  return 0;
}

/* -- the fate of packets ------------------------------------------------------------------------------------------- */

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* xorshift64, 0 <= result < 1. */
static double draw(struct direction *d) {
  d->random ^= d->random << 13;
  d->random ^= d->random >> 7;
  d->random ^= d->random << 17;
  return (double)(d->random >> 11) / 9007199254740992.0;
}

static int is_fragment(const unsigned char *packet, int length) {
  if (length >= 20 && packet[0] >> 4 == 4) return ((packet[6] & 0x3f) | packet[7]) != 0; /* offset, or more fragments */
  return length >= 40 && packet[0] >> 4 == 6 && packet[6] == 44;
}

/* Removes packets that have left the line from the queue. */
static void leave_line(struct direction *d, uint64_t time) {
  while (d->sent != d->taken && d->ring[d->sent % RING].leaves <= time) d->queued -= d->ring[d->sent++ % RING].length;
}

/*
 * A burst begins at a packet with the probability that makes `loss` the share of all: between two bursts (1 - p) / p
 * packets pass.
 */
static int is_lost(struct direction *d) {
  if (d->losing == 0 && d->loss > 0 && draw(d) * (d->loss + d->burst * (100 - d->loss)) < d->loss) d->losing = (int)d->burst;
  if (d->losing == 0) return 0;
  d->losing--;
  return 1;
}

static void take_in(struct direction *d, const unsigned char *data, int length, uint64_t time) {
  d->fragments += (uint64_t)is_fragment(data, length);
  if (is_lost(d)) {
    d->lost++;
    return;
  }
  leave_line(d, time);
  unsigned char *copy = NULL;
  int room = d->taken - d->delivered < RING - 1 && (d->queue == 0 || (double)(d->queued + length) <= d->queue);
  if (!room || !(copy = malloc((size_t)length))) {
    d->dropped++;
    return;
  }
  memcpy(copy, data, (size_t)length);
  struct packet *packet = &d->ring[d->taken++ % RING];
  packet->data = copy;
  packet->length = length;
  packet->starts = d->line_free > time ? d->line_free : time;
  packet->leaves = packet->starts + (d->rate > 0 ? (uint64_t)(length * 8000.0 / d->rate) : 0);
  packet->arrives = packet->leaves + (uint64_t)((d->delay + (d->jitter > 0 ? draw(d) * d->jitter : 0)) * (double)MILLISECOND);
  if (packet->arrives < d->last_arrival) packet->arrives = d->last_arrival;
  d->line_free = packet->leaves;
  d->last_arrival = packet->arrives;
  d->queued += length;
  note_wait(d, packet->starts - time);
}

static void note_wait(struct direction *d, uint64_t wait) {
  uint64_t step = wait / WAIT_STEP;
  d->waits[step < WAITS ? step : WAITS - 1]++;
  d->waited_count++;
  d->waited_sum += wait;
  if (wait > d->waited) d->waited = wait;
}

/* 99th percentile of the waits, in ns. */
static uint64_t wait_p99(const struct direction *d) {
  uint64_t beyond = d->waited_count / 100, step = WAITS;
  while (step > 0 && d->waits[step - 1] <= beyond) beyond -= d->waits[--step];
  return step * WAIT_STEP < d->waited ? step * WAIT_STEP : d->waited;
}

static void deliver(struct direction *d, uint64_t time) {
  leave_line(d, time);
  while (d->delivered != d->taken && d->ring[d->delivered % RING].arrives <= time) {
    struct packet *packet = &d->ring[d->delivered++ % RING];
    if (write(d->out, packet->data, (size_t)packet->length) == packet->length) {
      d->packets++;
      d->bytes += (uint64_t)packet->length;
    } else {
      d->refused++;
    }
    free(packet->data);
    packet->data = NULL;
  }
}

/* Delivers due packets, waits for packets or for the next delivery, accepts arrivals. */
static void carry(void) {
  static unsigned char data[MAX_PACKET];
  uint64_t time = now(), next = time + SECOND;
  for (int i = 0; i < 2; i++) {
    struct direction *d = &directions[i];
    deliver(d, time);
    if (d->delivered != d->taken && d->ring[d->delivered % RING].arrives < next) next = d->ring[d->delivered % RING].arrives;
  }
  struct pollfd polls[2] = {{directions[0].in, POLLIN, 0}, {directions[1].in, POLLIN, 0}};
  struct timespec wait = {(time_t)((next - time) / SECOND), (long)((next - time) % SECOND)};
  sigset_t none;
  sigemptyset(&none);
  if (ppoll(polls, 2, &wait, &none) <= 0) return;
  for (int i = 0; i < 2; i++) {
    if (!(polls[i].revents & POLLIN)) continue;
    for (int taken = 0; taken < BATCH; taken++) {
      ssize_t length = read(directions[i].in, data, sizeof data);
      if (length <= 0) break;
      take_in(&directions[i], data, (int)length, now());
    }
  }
}

static void print_counters(void) {
  static const char *names[2] = {"ab", "ba"};
  for (int i = 0; i < 2; i++) {
    struct direction *d = &directions[i];
    printf("%c\"%s\":{\"packets\":%llu,\"bytes\":%llu,\"lost\":%llu,\"dropped\":%llu,", i == 0 ? '{' : ',', names[i],
           (unsigned long long)d->packets, (unsigned long long)d->bytes, (unsigned long long)d->lost, (unsigned long long)d->dropped);
    printf("\"refused\":%llu,\"fragments\":%llu,", (unsigned long long)d->refused, (unsigned long long)d->fragments);
    printf("\"waited\":%.3f,\"mean\":%.3f,\"p99\":%.3f}", (double)d->waited / (double)MILLISECOND,
           d->waited_count == 0 ? 0 : (double)d->waited_sum / (double)d->waited_count / (double)MILLISECOND,
           (double)wait_p99(d) / (double)MILLISECOND);
    d->waited = d->waited_sum = d->waited_count = 0;
    memset(d->waits, 0, sizeof d->waits);
  }
  puts("}");
  fflush(stdout);
  asked = 0;
}

/* -- devices ------------------------------------------------------------------------------------------------------- */

/* Enters the namespace, and stays there. */
static void enter(const char *name) {
  char path[160];
  snprintf(path, sizeof path, "/var/run/netns/%s", name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET)) fail(1, "namespace %s: %s", name, strerror(errno));
  close(file);
}

static void configure(int socket, unsigned long what, struct ifreq *request, const char *name) {
  if (ioctl(socket, what, request)) fail(1, "%s: %s", name, strerror(errno));
}

static void set_up(const char *device, const struct end *end, int mtu) {
  int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) fail(1, "socket: %s", strerror(errno));
  struct ifreq request = {0};
  struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
  strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  address->sin_family = AF_INET;
  address->sin_addr = end->address;
  configure(control, SIOCSIFADDR, &request, "address");
  address->sin_addr.s_addr = htonl(end->prefix == 0 ? 0 : ~0u << (32 - end->prefix));
  configure(control, SIOCSIFNETMASK, &request, "prefix");
  request.ifr_mtu = mtu;
  configure(control, SIOCSIFMTU, &request, "mtu");
  request.ifr_qlen = DEVICE_QUEUE;
  configure(control, SIOCSIFTXQLEN, &request, "queue length");
  configure(control, SIOCGIFFLAGS, &request, "flags");
  request.ifr_flags |= IFF_UP;
  configure(control, SIOCSIFFLAGS, &request, "up");
  close(control);
}

static int open_device(const struct end *end, const char *device, int mtu) {
  enter(end->namespace);
  int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tun < 0) fail(1, "/dev/net/tun: %s", strerror(errno));
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  configure(tun, TUNSETIFF, &request, "TUN device");
  set_up(device, end, mtu);
  return tun;
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static double number(const char *option, const char *text, char **after, double least, double most) {
  errno = 0;
  double value = strtod(text, after);
  if (*after == text || errno != 0 || !(value >= least && value <= most)) fail(2, "--%s takes %g to %g, not \"%s\"", option, least, most, text);
  return value;
}

static double single(const char *option, const char *text, double least, double most) {
  char *after;
  double value = number(option, text, &after, least, most);
  if (*after != '\0') fail(2, "--%s takes one number, not \"%s\"", option, text);
  return value;
}

static void pair(const char *option, const char *text, double least, double most, double *forth, double *back) {
  char *after;
  *forth = *back = number(option, text, &after, least, most);
  if (*after == ':') *back = number(option, after + 1, &after, least, most);
  if (*after != '\0') fail(2, "--%s takes a number, or two with a colon between, not \"%s\"", option, text);
}

static void parse_end(const char *option, const char *text, struct end *end) {
  char address[INET_ADDRSTRLEN], rest;
  int fields = sscanf(text, "%127[^,],%15[0-9.]/%d%c", end->namespace, address, &end->prefix, &rest);
  if (fields != 3 || inet_pton(AF_INET, address, &end->address) != 1 || end->prefix < 0 || end->prefix > 32)
    fail(2, "--%s takes NAMESPACE,ADDRESS/PREFIX, not \"%s\"", option, text);
}

static void parse(int count, char **arguments, struct end ends[2], char *device, int *mtu) {
  static const struct option options[] = {
      {"device", required_argument, NULL, 'd'}, {"a", required_argument, NULL, 'a'},      {"b", required_argument, NULL, 'b'},
      {"rate", required_argument, NULL, 'r'},   {"queue", required_argument, NULL, 'q'},  {"delay", required_argument, NULL, 'l'},
      {"loss", required_argument, NULL, 'o'},   {"jitter", required_argument, NULL, 'j'}, {"mtu", required_argument, NULL, 'm'},
      {"burst", required_argument, NULL, 'u'},  {"seed", required_argument, NULL, 's'},   {NULL, 0, NULL, 0}};
  struct direction *ab = &directions[0], *ba = &directions[1];
  uint64_t seed = 1;
  int option;
  ab->burst = ba->burst = 1;
  while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
    switch (option) {
      case 'd':
        if (strlen(optarg) == 0 || strlen(optarg) >= IFNAMSIZ) fail(2, "--device takes a name of at most %d letters", IFNAMSIZ - 1);
        strcpy(device, optarg);
        break;
      case 'a': parse_end("a", optarg, &ends[0]); break;
      case 'b': parse_end("b", optarg, &ends[1]); break;
      case 'r': pair("rate", optarg, 0, 1e6, &ab->rate, &ba->rate); break;
      case 'q': pair("queue", optarg, 0, 1e9, &ab->queue, &ba->queue); break;
      case 'l': pair("delay", optarg, 0, 1e5, &ab->delay, &ba->delay); break;
      case 'j': pair("jitter", optarg, 0, 1e5, &ab->jitter, &ba->jitter); break;
      case 'o': pair("loss", optarg, 0, 100, &ab->loss, &ba->loss); break;
      case 'u': pair("burst", optarg, 1, 1000, &ab->burst, &ba->burst); break;
      case 'm': *mtu = (int)single("mtu", optarg, 576, 65535); break;
      case 's': seed = (uint64_t)single("seed", optarg, 0, 9e15); break;
      default: exit(2); /* getopt has printed the reason */
    }
  }
  if (optind < count) fail(2, "\"%s\" is no option", arguments[optind]);
  if (*device == '\0' || *ends[0].namespace == '\0' || *ends[1].namespace == '\0') fail(2, "--device, --a and --b are needed");
  /* Odd multiples of different large numbers: never 0, which xorshift would keep. */
  ab->random = (2 * seed + 1) * 0x9e3779b97f4a7c15ull;
  ba->random = (2 * seed + 1) * 0xd1342543de82ef95ull;
}

static void fail(int status, const char *format, ...) {
  va_list values;
  va_start(values, format);
  fputs("link-emulator: ", stderr);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  va_end(values);
  exit(status);
}
