/**
 * Constants of BBR: those of draft-ietf-ccwg-bbr by their names (§2), then ours. Times in ms; volumes in bytes or
 * packets as stated.
 */

// The draft's.
export const StartupPacingGain: f64 = 2.77;
export const DrainPacingGain: f64 = 0.5;
export const ProbeDownPacingGain: f64 = 0.9;
export const ProbeUpPacingGain: f64 = 1.25;
export const DefaultCwndGain: f64 = 2;
export const ProbeUpCwndGain: f64 = 2.25;
export const ProbeRTTCwndGain: f64 = 0.5;
export const PacingMargin: f64 = 0.01;
export const LossThresh: f64 = 0.02;
export const Beta: f64 = 0.7;
export const Headroom: f64 = 0.15;
export const MinPipeCwndPackets: f64 = 4;
export const StartupFullLossCnt: u32 = 6;
export const FullBwGrowth: f64 = 1.25;
export const FullBwRounds: u32 = 3;
export const DrainRounds: u32 = 3;
export const ExtraAckedFilterLen: u32 = 10;
export const MinRTTFilterLen: f64 = 10_000;
export const ProbeRTTDuration: f64 = 200;
export const MostProbeRounds: f64 = 63;
export const ProbeWaitBase: f64 = 2_000;
export const ProbeWaitSpread: f64 = 1_000;
export const MostSendQuantum: f64 = 65_536;

// Ours. Where a link loses packets without being full, the draft slows down as if it were (its goal is "loss rates of
// up to 1 %", §3.1). We want the rate of the link up to 5 % loss (docs/transport.md §4), and still to yield where the
// queue is the cause. loss.ts distinguishes the two by whether packets wait.

/**
 * No packet waits while the round trip is below min_rtt × this + `QuietSlack`. A queue of a quarter of the
 * bandwidth-delay product, once full, lies clearly above; jitter of timers and links lies below.
 */
export const QuietRtt: f64 = 1.125;
export const QuietSlack: f64 = 1;

/**
 * Every packet of a round waited if even the fastest took longer than min_rtt × this + `WaitedSlack`, or + what the
 * packets of one acknowledgement take on the line, since only the last of them gives a sample. Jitter does not affect
 * the fastest, so this may be closer: beside CUBIC a queue of a quarter of the product is half empty most of the time.
 */
export const WaitedRtt: f64 = 1.0625;
export const WaitedSlack: f64 = 0.5;

/**
 * In a queue that another flow holds, packets wait longer than this, too: less may be the hosts themselves, which in a
 * bulk transfer serve packets in batches, as on loopback. ms, for packets of up to `EthernetPayload` bytes, and in
 * proportion for larger ones. Below a round trip of 40 ms this is more than `WaitedRtt` requires.
 */
export const HostDelay: f64 = 3;
export const EthernetPayload: f64 = 1_452;

/**
 * Weight of one quiet round in the average of random loss: it follows the link within a second or two, not within a
 * burst. The first rounds count for more, as in a mean that began with one loss-free round: Startup leaves few of them,
 * and before the average is right the first round that waits for a queue and loses what the link loses would count as
 * congestion.
 */
export const RandomLossGain: f64 = 0.125;

/** Upper bound of random loss: beyond it a link is broken, or a policer drops without a queue. */
export const MostRandomLoss: f64 = 0.1;

/**
 * Loss counts as ours above LossThresh + this × the random loss of the path. Twice, because the loss of a single round
 * occasionally lies that far from its mean, and each false alarm costs a cycle of 2 to 3 s.
 */
export const RandomLossMargin: f64 = 2;

/** … and above this many packets: in a window of 20 packets one lost packet is 5 % and says nothing. */
export const LeastLostPackets: f64 = 2;

/** Loss that counts as congestion even if no packet waits: a policer, or a queue of a few packets. */
export const ExcessiveLoss: f64 = 0.2;

/** Rounds with fewer packets than this say nothing about random loss. */
export const LeastRoundPackets: f64 = 16;

/** Packets that our receivers acknowledge together (recovery/ack-policy.ts); §5.5.8.2 lets the budget cover them. */
export const PacketsPerAck: f64 = 10;

/**
 * Least time between probes, ms. Where a few packets fill the line, the draft's number of rounds between probes, as
 * many as Reno would take, is a few ms, and each of them overflows a queue of ten packets.
 */
export const ProbeWaitLeast: f64 = 200;

/**
 * A minimum RTT is valid for at least this many round trips of its own: ProbeRTT withholds half the window for a round
 * trip and 200 ms, which every 10 s would be a tenth of what a satellite link can carry. Departs from §5.3.4.2, which
 * requires the same interval of all flows, beyond 500 ms only.
 */
export const MinRTTFilterRounds: f64 = 20;

/**
 * ProbeBW_UP ends once every packet of this many round trips waited longer than the fastest since UP began, by the
 * measure of `QuietRtt`. Departs from §5.3.3.9, where three full rounds without growth end it: they leave a queue of a
 * whole round trip in a deep buffer, this half of one. With less, a burst of acknowledgements would suffice.
 */
export const UpQueueRounds: f64 = 0.5;

/**
 * … unless max_bw has grown by more than this meanwhile: the packets wait, but the probe finds bandwidth, which
 * belonged to another flow. Half of a line that two flows share grows by a ninth in UP; the variation of a full line's
 * samples lies below.
 */
export const UpGrowth: f64 = 1.05;

/** Rounds of CRUISE in which every packet waited, after which DOWN tries to drain the queue. */
export const CompetingRounds: u32 = 4;

/**
 * The same after a ProbeRTT that interrupted COMPETE: half of our window has just left the queue, and the queue still
 * stands.
 */
export const ResumingRounds: u32 = 1;

/**
 * Rounds of DOWN in which every packet waited, after which another flow holds the queue: each round drains our own
 * packets by a tenth of a round trip.
 */
export const DrainingRounds: u32 = 8;

/** With more random loss than this, a CUBIC flow is limited to a few dozen packets and holds no queue. */
export const MostCompetingLoss: f64 = 0.003;

/**
 * The queue-free round trip is the minimum of this and the last interval, which is longer than min_rtt's: a held queue
 * inflates that.
 */
export const QuietInterval: f64 = 30_000;

/**
 * While competing with less than this share of the line's known rate, a loss leaves more of the window than β_cubic
 * (0.7): two CUBIC flows that begin unequal, because the queue is deep or one came late, take minutes to become equal.
 * In a deep queue, where the round trip is that many times the minimum, BBR's Startup ends long before CUBIC's slow
 * start does, and the known rate is too low: there the larger share applies.
 */
export const DeepQueue: f64 = 3;
export const PoorShare: f64 = 0.5;
export const PoorShareDeep: f64 = 0.8;
export const PoorBeta: f64 = 0.85;

/** Decay of the line's observed rate per cycle of 2 to 3 s: half after a minute. */
export const LineBwDecay: f64 = 0.97;

/** N of RFC 9002 §7.7, while the window is CUBIC's. */
export const CompetePacingGain: f64 = 1.25;
