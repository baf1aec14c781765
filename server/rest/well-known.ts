/**
 * `GET /.well-known/svc`: the document by which TLS proves this base station to a device or client that has no pin
 * for it (PROTOCOL.md §7.8).
 *
 * A peer that has verified our certificate learns here which key must answer on which UDP port. The document holds no
 * secret and needs no API key. A reverse proxy may serve it instead, and cache it for as long as Cache-Control says.
 */
import type { FastifyInstance } from 'fastify';
import { STATION_DOCUMENT_PATH } from '../../protocol/records/index.ts';

/** The key of the base station, and the port where it answers. */
export interface StationIdentity {
  /** Full hex. */
  readonly fingerprint: string;
  /** UDP. */
  readonly port: number;
}

/**
 * Seconds for which a document is valid, and for which a cache may serve it: it must then remain valid for a while,
 * even by a clock that is ahead.
 */
const LIFETIME = 86_400;
const CACHED = 3_600;

const documentSchema = {
  type: 'object',
  required: ['fingerprint', 'port', 'expires'],
  properties: { fingerprint: { type: 'string' }, port: { type: 'integer' }, expires: { type: 'string' } },
} as const;

/** Adds the route. @param wallTime Unix time, ms */
export function addWellKnown(app: FastifyInstance, station: () => StationIdentity, wallTime: () => number): void {
  app.get(STATION_DOCUMENT_PATH, { schema: { response: { 200: documentSchema } } }, async (_, reply) => {
    reply.header('cache-control', `public, max-age=${CACHED}`);
    const { fingerprint, port } = station();
    return { fingerprint, port, expires: new Date(wallTime() + LIFETIME * 1000).toISOString() };
  });
}
