/**
 * The path's recent share of lost packets, over some 128 packets: it decides whether a lone small packet is worth a
 * second copy.
 *
 * It counts packets, not time: a device that sends once a minute over a bad radio link benefits too.
 */
import { Connection } from '../records/connection';

/** 1, in units of `Connection.lossEstimate`. */
const WHOLE: u32 = 65_535;
/** Our constant: weight of one packet is 1 / 2^this. A single loss shows as 0.8 %. */
const SHIFT: u32 = 7;

export function notePathArrival(c: Connection): void {
  c.lossEstimate -= <u16>(<u32>c.lossEstimate >> SHIFT);
}

export function notePathLoss(c: Connection): void {
  c.lossEstimate += <u16>((WHOLE - <u32>c.lossEstimate) >> SHIFT);
}

/** Takes back a counted loss that was spurious. */
export function takeBackLoss(c: Connection): void {
  c.lossEstimate -= <u16>min(<u32>c.lossEstimate, WHOLE >> SHIFT);
}

/** The share, 0 to 1. */
export function pathLoss(c: Connection): f32 {
  return <f32>c.lossEstimate / <f32>WHOLE;
}
