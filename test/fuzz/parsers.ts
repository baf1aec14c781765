/**
 * Every parser of bytes or text from outside, except those of the control plane (control-parsers.ts); and the
 * handshake.
 */
import { rootCertificates } from 'node:tls';
import { base64urlnopad } from '@scure/base';
import { parseServerUrl } from '../../device/settings.ts';
import { ipv4DefaultRoutes, ipv6DefaultRoutes } from '../../platform/node/default-routes.ts';
import { canonicalAddress, parsePrefix } from '../../protocol/address.ts';
import { type CborValue, decode, encode } from '../../protocol/cbor/index.ts';
import { decodeMessage, encodeMessage } from '../../protocol/coap/message.ts';
import { formatPath, parsePath } from '../../protocol/coap/path.ts';
import { decodeFlowDatagram, decodeFlowPart, encodeFlowDatagram, encodeFlowPart, MAX_PARTS } from '../../protocol/datagrams/index.ts';
import {
  decodeInitiatorOffer,
  decodeResponderOffer,
  encodeInitiatorOffer,
  encodeResponderOffer,
} from '../../protocol/endpoint/parameters.ts';
import { checkCertificates, decodePrivateKey, encodePrivateKey } from '../../protocol/identity/index.ts';
import { HandshakeState, XX } from '../../protocol/noise/index.ts';
import * as packet from '../../protocol/packet/index.ts';
import * as password from '../../protocol/password/index.ts';
import { decodeNatPmp } from '../../protocol/port-mapping/nat-pmp.ts';
import { decodePcpMap, encodePcpMap } from '../../protocol/port-mapping/pcp.ts';
import * as records from '../../protocol/records/index.ts';
import { defaultParameters } from '../../runtime/host/defaults.ts';
import { nativeHost, nobleAead } from '../support/crypto.ts';
import { controlParsers } from './control-parsers.ts';
import { hostile } from './mutate.ts';
import { codec, hex, parser } from './parser.ts';
import type { Target } from './target.ts';

const utf8 = new TextEncoder();
const text = new TextDecoder();
const crypto = nativeHost(1);
const bytes = (length: number) => crypto.randomBytes(length);
const fingerprint = 'ab'.repeat(32);
const offer = { parameters: defaultParameters, flowParts: 64, id: bytes(8), resetToken: bytes(16) };
const ids = { productId: 'pr-1', deviceId: 'de-1' };

const pairings: readonly records.PairingString[] = [
  { ...ids, server: 'a.example:4433', serverFingerprint: fingerprint, password: 'a', sct: 'x', username: 'user' },
  { ...ids, addresses: ['192.168.1.7:5592', '[2001:db8::1]:5592', 'host:1'], fingerprint },
];

const NEW_YEAR_2030 = Date.UTC(2030, 0, 1);

const parsers: readonly Target[] = [
  parser({
    name: 'station.document',
    samples: ['2030-01-02T03:04:05.678Z', '2030-01-01T23:59:59Z'].map((expires) =>
      utf8.encode(JSON.stringify({ fingerprint, port: 4433, expires })),
    ),
    parse: (input) => records.decodeStationDocument(input, NEW_YEAR_2030),
    encode: ({ expires, ...named }) => utf8.encode(JSON.stringify({ ...named, expires: new Date(expires).toISOString() })),
  }),
  parser({
    name: 'certificates.pem',
    samples: [rootCertificates.slice(0, 1), rootCertificates.slice(0, 2)].map((pem) => utf8.encode(pem.join('\n'))),
    parse: (input) => checkCertificates(text.decode(input)),
    encode: (pem) => utf8.encode(pem),
    raises: 'local',
  }),
  parser({
    name: 'cbor',
    samples: values().map(encode),
    parse: (input) => decode(input),
    encode: (value) => encode(value as CborValue),
  }),
  parser({ name: 'coap.message', samples: messages(), parse: decodeMessage, encode: encodeMessage }),
  parser({
    name: 'coap.path',
    samples: ['/a/b', '/iam/users/%C3%A4', '/', '/tcp-tunnels/connect/x?y=1'].map((path) => utf8.encode(path)),
    parse: (input) => parsePath(text.decode(input)),
    encode: (segments) => utf8.encode(formatPath(segments)),
    raises: 'local',
  }),
  parser({
    name: 'pcp.map',
    samples: [bytes(4), bytes(16)].map((client) => {
      const mapping = { lifetime: 3600, client, nonce: bytes(12), internalPort: 5000, externalPort: 6000, external: client };
      const response = encodePcpMap(mapping);
      response[1] = 0x81;
      return response;
    }),
    parse: decodePcpMap,
  }),
  parser({
    name: 'nat-pmp',
    samples: [
      [0, 128, 0, 0, 0, 0, 0, 9, 192, 0, 2, 1],
      [0, 129, 0, 0, 0, 0, 0, 9, 19, 136, 23, 112, 0, 0, 14, 16],
    ].map((response) => Uint8Array.from(response)),
    parse: decodeNatPmp,
  }),
  parser({
    name: 'default-routes',
    samples: [
      'Iface Destination Gateway Flags\neth0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n',
      `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 fe80000000000000021122fffe334455 00000400 00000002 00000000 00450003 eth0\n`,
    ].map((table) => utf8.encode(table)),
    parse: (input) => [...ipv4DefaultRoutes(text.decode(input)), ...ipv6DefaultRoutes(text.decode(input))],
  }),
  parser({
    name: 'packet.initiate',
    samples: [new Uint8Array(0), bytes(20)].map((token) =>
      packet.padded(
        packet.encodeInitiate(crypto, packet.mac1Key(crypto, 'station'), {
          version: 1,
          suite: 1,
          source: bytes(8),
          token,
          message: bytes(32),
        }),
      ),
    ),
    parse: (input) => {
      packet.mac1Holds(crypto, packet.mac1Key(crypto, 'station'), input);
      return packet.decodeInitiate(input);
    },
  }),
  codec('packet.retry', packet.decodeRetry, packet.encodeRetry, { destination: bytes(8), token: bytes(20) }),
  codec('packet.respond', packet.decodeRespond, packet.encodeRespond, { destination: bytes(8), source: bytes(8), message: bytes(290) }),
  codec('packet.complete', packet.decodeComplete, packet.encodeComplete, { destination: bytes(8), message: bytes(240) }),
  codec('packet.reset', packet.decodeReset, packet.encodeReset, { id: bytes(8), token: bytes(16) }),
  codec('packet.versions', packet.decodeVersions, packet.encodeVersions, {
    destination: bytes(8),
    versions: Uint8Array.of(1, 2),
    suites: Uint8Array.of(1),
  }),
  parser({
    name: 'packet.data',
    samples: [Uint8Array.of(0xc0, ...bytes(40)), packet.routed(bytes(8), Uint8Array.of(0xe0, ...bytes(60)))],
    parse: (input) => (packet.isRoute(input) ? packet.isData(input, packet.ROUTE_HEADER) : packet.isData(input, 0)),
  }),
  parser({
    name: 'offer.responder',
    samples: [encodeResponderOffer(offer, encode({ ProductId: 'pr-1', DeviceId: 'de-1' }))],
    parse: decodeResponderOffer,
    encode: (value) => encodeResponderOffer(value, encode(value.info as CborValue)),
  }),
  codec('offer.initiator', decodeInitiatorOffer, encodeInitiatorOffer, { ...offer, versions: Uint8Array.of(1), suites: Uint8Array.of(1) }),
  parser({
    name: 'datagrams.flow',
    samples: [0, 100, 70_000, 2 ** 40].map((flow) => encodeFlowDatagram(flow, bytes(20))),
    parse: decodeFlowDatagram,
    encode: ({ flow, payload }) => encodeFlowDatagram(flow, payload),
  }),
  parser({
    name: 'datagrams.part',
    samples: [0, 1, 70_000].map((number) => encodeFlowPart({ flow: 100, number, index: 1, count: 3, payload: bytes(20) })),
    parse: (content) => decodeFlowPart(content, MAX_PARTS),
    encode: encodeFlowPart,
  }),
  parser({
    name: 'password.request',
    samples: ['owner', ''].map((username) => password.encodePasswordRequest({ username })),
    parse: password.decodePasswordRequest,
    encode: password.encodePasswordRequest,
  }),
  codec(
    'password.offer',
    password.decodePasswordOffer,
    password.encodePasswordOffer,
    { kdf: 0, salt: null, run: 1, share: bytes(32) },
    { kdf: 1, salt: bytes(16), run: 70_000, share: bytes(32) },
  ),
  codec('password.proof', password.decodePasswordProof, password.encodePasswordProof, { share: bytes(32), tag: bytes(64) }),
  codec('password.confirmation', password.decodePasswordConfirmation, password.encodePasswordConfirmation, { tag: bytes(64) }),
  codec('records.device-details', records.decodeDeviceDetails, records.encodeDeviceDetails, {
    modes: ['LocalOpen', 'PasswordOpen'],
    appName: 'a',
    ...ids,
    friendlyName: 'ä',
  }),
  codec('records.tunnel-service', records.decodeTunnelService, records.encodeTunnelService, {
    id: 'web',
    type: 'http',
    host: '127.0.0.1',
    port: 80,
    streamPort: 0x8000_0001,
    metadata: { a: 'b' },
  }),
  codec('records.tunnel-services', records.decodeTunnelServiceIds, records.encodeTunnelServiceIds, ['web', 'ssh']),
  codec('records.user', records.decodeUser, records.encodeUser, {
    username: 'admin',
    displayName: 'A',
    role: 'Administrator',
    fingerprints: [{ fingerprint, name: 'phone' }],
    sct: 's',
    push: { token: 't', projectId: 'p' },
    notificationCategories: ['a'],
  }),
  codec('records.settings', records.decodeSettings, records.encodeSettings, {
    passwordOpenPairing: true,
    passwordInvitePairing: false,
    localOpenPairing: true,
    passwordOpenSct: 's',
    passwordOpenPassword: 'p',
  }),
  codec('records.open-pairing', records.decodePasswordOpenPairing, records.encodeOpenPairing, {
    username: 'bob',
    fingerprintName: 'phone',
  }),
  codec('records.push', records.decodePush, records.encodePush, { token: 'token', projectId: 'project' }),
  codec('records.names', records.decodeNames, records.encodeNames, ['admin', 'größe']),
  parser({
    name: 'records.text',
    samples: [records.encodeText('Bob'), records.encodeText(undefined)],
    parse: records.decodeText,
    encode: records.encodeText,
  }),
  parser({
    name: 'records.pairing-string',
    samples: [
      `p=pr-1,d=de-1,pwd=a%2Cb,sct=x,u=user,fp=${fingerprint}`,
      'd=de-1,p=pr-1,new=1',
      `p=pr-1,d=de-1,s=a.example:4433,sf=${fingerprint}`,
      'p=pr-1,d=de-1,a=192.168.1.7:5592;[fe80::1]:5592',
    ].map((pairing) => utf8.encode(pairing)),
    parse: (input) => records.decodePairingString(text.decode(input)),
    encode: (pairing) => utf8.encode(records.encodePairingString(pairing)),
    raises: 'local',
  }),
  parser({
    name: 'records.pairing-link',
    // Damages the content and then computes the right checksum over it.
    samples: pairings.map((pairing) => base64urlnopad.decode(records.encodePairingBytes(pairing).slice(1)).slice(0, -2)),
    parse: (input) => {
      const crc = records.crc16(input);
      const form = `~${base64urlnopad.encode(Uint8Array.from([...input, crc >> 8, crc & 0xff]))}`;
      const { fingerprint: pin, ...pairing } = records.decodePairingBytes(form);
      // The encoder omits it beside a password.
      return pin === undefined || pairing.password !== undefined ? pairing : { ...pairing, fingerprint: pin };
    },
    encode: (pairing) => base64urlnopad.decode(records.encodePairingBytes(pairing).slice(1)).slice(0, -2),
    raises: 'local',
  }),
  parser({
    name: 'identity.private-key',
    samples: [utf8.encode(encodePrivateKey(bytes(32)))],
    parse: (input) => decodePrivateKey(text.decode(input)),
    encode: (raw) => utf8.encode(encodePrivateKey(raw)),
    raises: 'local',
  }),
  parser({
    name: 'address',
    samples: ['192.0.2.1', '2001:db8::1', '::ffff:1.2.3.4', '10.0.0.0/8', 'fe80::1%eth0'].map((each) => utf8.encode(each)),
    parse: (input) => {
      parsePrefix(text.decode(input));
      return canonicalAddress(text.decode(input));
    },
    encode: (canonical) => utf8.encode(canonical),
  }),
  parser({
    name: 'server-url',
    samples: ['https://station.example', 'station.example:4433', 'https://[2001:db8::1]:8443/'].map((each) => utf8.encode(each)),
    parse: (input) => parseServerUrl(text.decode(input)),
    encode: ({ host, port }) => utf8.encode(`https://${host.includes(':') ? `[${host}]` : host}${port === undefined ? '' : `:${port}`}`),
    raises: 'local',
  }),
];

const noise: Target = {
  name: 'noise',
  iterate(random) {
    const host = nativeHost(random.u32());
    const state = (initiator: boolean) =>
      new HandshakeState({
        pattern: XX,
        initiator,
        prologue: new Uint8Array(3),
        crypto: host,
        aead: nobleAead,
        staticKey: host.generateKey(),
      });
    const [alice, bob] = [state(true), state(false)];
    let [from, to] = [alice, bob];
    for (let i = 0; i < 3; i++) {
      const message = from.writeMessage(random.bytes(50));
      for (let damaged = 0; damaged < 4; damaged++) {
        const input = hostile(random, [message]);
        if (Buffer.compare(input, message) === 0) continue;
        // a damaged message may be accepted only before authentication: the first, whose payload is plain text
        if (to.readMessage(input, () => false) !== null) throw new Error(`message ${i + 1} was accepted: ${hex(input)}`);
      }
      if (to.readMessage(message) === null) throw new Error(`message ${i + 1} was refused after damaged ones`);
      [from, to] = [to, from];
    }
  },
};

export const parserTargets: readonly Target[] = [...parsers, ...controlParsers, noise];

function values(): CborValue[] {
  return [
    { A: 1, B: 'text', C: bytes(20), D: [1, -1, true, false, null], E: { F: 1.5 } },
    [0, 23, 24, 255, 256, 65_535, 65_536, 4_294_967_296, -4_294_967_297, 1e300],
    'ä'.repeat(100),
    bytes(300),
    {},
  ];
}

function messages(): Uint8Array[] {
  const option = (number: number, value: Uint8Array) => ({ number, value });
  return [
    encodeMessage({
      code: 0x01,
      token: bytes(8),
      options: [option(11, utf8.encode('a')), option(11, utf8.encode('b'))],
      payload: bytes(0),
    }),
    encodeMessage({
      code: 0x45,
      token: bytes(8),
      options: [option(4, bytes(8)), option(23, bytes(3)), option(6, bytes(1))],
      payload: bytes(50),
    }),
    encodeMessage({ code: 0x02, token: bytes(1), options: [option(12, bytes(2)), option(2053, bytes(300))], payload: bytes(3) }),
  ];
}
