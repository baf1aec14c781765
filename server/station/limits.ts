import { MAX_SCTS } from '../../protocol/control/index.ts';
import type { Limits } from '../../protocol/limits.ts';
import { CAPACITY as RATES } from '../../protocol/rates.ts';
import { FAILURES, JOINS, JOINS_AT_ONCE } from './join-api.ts';
import { CROWDED_PER_DEVICE } from './outbound-api.ts';
import { BURST_SECONDS } from './rates.ts';
import { QUEUE_PER_END, QUEUE_TOTAL, RETRY_DELAY } from './relay.ts';
import { defaultSettings } from './settings.ts';
import { MAX_WAITING, PER_ADDRESS, PER_ADDRESS_BURST, TOTAL } from './stun.ts';

export const station: Limits = {
  Connections: {
    value: [defaultSettings.connections, defaultSettings.arrivalTimeout],
    setting: '`connections`, `--connections`',
    filledBy: 'anyone; with a valid credential, for long',
    next:
      'The oldest session without a credential makes way. When there is none: BUSY. The last quarter is kept for registered keys of ' +
      'devices, each of which has one slot there until it attaches.',
    freedWhen: 'The session ends; without a valid credential after #s (`arrivalTimeout`)',
    test: 'test/server/station/admission.test.ts',
  },
  'Clients of one device': {
    value: [(defaultSettings.connections * 3) / 8, defaultSettings.connections / 4],
    unit: 'as many connections as are left for those of others (# where no other device has clients)',
    filledBy: 'holders of its tokens or of a server key',
    next:
      'At that device with the same token or key: BUSY once these hold a third (#) of the connections that are not kept for devices; ' +
      'with another: a connection, until all clients of that device hold half of them. At another device: a connection; attackers with ' +
      'tokens of more than 13 devices leave none.',
    freedWhen: 'The session ends',
    test: 'test/server/station/admission.test.ts',
  },
  'Connections of one address': {
    value: defaultSettings.connectionsPerAddress,
    setting: '`connectionsPerAddress`, `--connections-per-address`',
    filledBy: 'anyone at that address',
    next: 'At that address: BUSY. Elsewhere: a connection.',
    freedWhen: 'The session ends',
    test: 'test/server/station/limits.test.ts',
  },
  'Attaches from one address': {
    value: [defaultSettings.attachesPerAddress, BURST_SECONDS * defaultSettings.attachesPerAddress],
    unit: '# a second, # at once',
    setting: '`attachesPerAddress`',
    filledBy: 'anyone at that address',
    next: 'At that address: 4.29 with Max-Age. Elsewhere: an answer.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/limits.test.ts',
  },
  'Refused joins from one address': {
    value: [FAILURES, FAILURES],
    unit: '# a minute, # at once',
    filledBy: 'anyone at that address',
    next: 'A device that is refused there gets 4.29 with Max-Age in place of the reason. With a valid invitation it joins.',
    freedWhen: 'The rate allows the next, one in 6 s',
    test: 'test/server/station/join.test.ts',
  },
  'Joins from one address': {
    value: [JOINS, JOINS_AT_ONCE],
    unit: '# a second, # at once, including those that succeed',
    filledBy: 'anyone at that address',
    next: 'At that address: 4.29 with Max-Age. Elsewhere: an answer.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/join.test.ts',
  },
  'Connects from one address': {
    value: [defaultSettings.connectsPerAddress, BURST_SECONDS * defaultSettings.connectsPerAddress],
    unit: '# a second, # at once',
    setting: '`connectsPerAddress`',
    filledBy: 'anyone at that address',
    next: 'At that address: 4.29 with Max-Age. Elsewhere: an answer.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/connect.test.ts',
  },
  'Connects to one device': {
    value: [defaultSettings.connectsPerDevice, defaultSettings.connectsPerDevice],
    unit: '# a second',
    setting: '`connectsPerDevice`, `--connects-per-device`',
    filledBy: 'holders of its tokens or of a server key',
    next:
      'Beyond that rate, up to # tokens or keys a second that had no connect in that second get one each, and then up to 2 addresses ' +
      'whose token had none from there. Otherwise: 4.29 with Max-Age.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/rates.test.ts',
  },
  'STUN requests from one address': {
    value: [PER_ADDRESS, PER_ADDRESS_BURST],
    unit: '# a second, # at once',
    filledBy: 'anyone at that address; others who forge it',
    next: 'At that address: no answer, until it is asked again. Elsewhere: an answer.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/stun.test.ts',
  },
  'STUN requests in all': {
    value: [TOTAL, TOTAL],
    unit: '# a second, # at once; refused ones are not counted',
    filledBy: 'anyone; with forged addresses all of it',
    next: 'No answer, until it asks again: what its NAT does stays unknown meanwhile. Attaches, connects and relayed packets are not affected.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/stun.test.ts',
  },
  'STUN answers that wait to leave': {
    value: MAX_WAITING,
    filledBy: 'peers behind a socket that stalls',
    next: 'No answer, until it is asked again',
    freedWhen: 'They are sent',
    test: 'test/server/station/stun.test.ts',
  },
  'Addresses and devices whose rates are remembered': {
    value: RATES,
    unit: '# of each kind',
    filledBy: 'an attacker with many addresses',
    next: 'Its full rate: the oldest is forgotten',
    freedWhen: 'The rate is full again, or another takes its place',
    test: 'test/server/station/parts.test.ts',
  },
  'Checks of tokens from issuers': {
    value: [defaultSettings.tokenChecksPerAddress, BURST_SECONDS * defaultSettings.tokenChecksPerAddress],
    unit: '# a second for one address, # at once',
    setting: '`tokenChecksPerAddress`',
    filledBy: 'anyone at that address who knows a server key',
    next: 'At that address: 4.29 with Max-Age, unless its token was checked before. Elsewhere: a check.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/jwt/verifier.test.ts',
  },
  'Lookups in the directory': {
    value: [defaultSettings.lookupsPerAddress, defaultSettings.lookups, defaultSettings.lookupTimeout],
    unit: '# of one address, # in all',
    setting: '`lookupsPerAddress`, `lookups`',
    filledBy: 'clients with a valid credential, while the directory is slow',
    next: 'At that address: 4.29 with Max-Age 1. Elsewhere: a lookup, until all are taken: then 4.29, too.',
    freedWhen: 'The directory settles; a client waits #s (`lookupTimeout`)',
    test: 'test/server/station/directory.test.ts',
  },
  'Clients that wait': {
    value: [defaultSettings.waitersPerSession, defaultSettings.waitersPerDevice, defaultSettings.waiters],
    unit: '# of one session, # for one device, # in all',
    setting: '`waitersPerSession`, `waitersPerDevice`, `waiters`',
    filledBy: 'clients with a valid credential',
    next:
      "At an address that holds a quarter of a device's: 5.03. Elsewhere: a slot, until four addresses hold all of the device's, or " +
      'all are taken: then 5.03, too. Those of another device are free.',
    freedWhen: 'The device attaches, the client gives up, or its session ends',
    test: ['test/server/station/limits.test.ts', 'test/server/station/connect.test.ts'],
  },
  'Relayed packets that wait for one end': {
    value: [QUEUE_PER_END, RETRY_DELAY],
    filledBy: 'the peer at the other end',
    next: 'The oldest packet of that end is dropped. Other ends send.',
    freedWhen: 'The socket takes it, tried every #s; the route ends',
    test: 'test/server/station/relay.test.ts',
  },
  'Relayed packets that wait for all ends': {
    value: [QUEUE_TOTAL, QUEUE_TOTAL / QUEUE_PER_END],
    filledBy: '# slow ends',
    next: 'A packet that would have to wait is dropped: a loss for its congestion control. One that leaves at once needs no slot.',
    freedWhen: 'The socket takes them',
    test: 'test/server/station/relay.test.ts',
  },
  'Tokens of one device': {
    value: [defaultSettings.tokensPerDevice, MAX_SCTS],
    unit: '#, at most #',
    setting: '`tokensPerDevice`',
    filledBy: 'that device',
    next: 'It gets 4.13, and its earlier list stays',
    freedWhen: 'It uploads a shorter list',
    test: 'test/server/station/attach.test.ts',
  },
  'Uploads of one device': {
    value: [defaultSettings.uploadsPerDevice, BURST_SECONDS * defaultSettings.uploadsPerDevice],
    unit: '# a second, # at once',
    setting: '`uploadsPerDevice`',
    filledBy: 'that device',
    next: 'It gets 4.29 with Max-Age. Other devices are counted separately.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/attach.test.ts',
  },
  'Pushes and invocations of one device': {
    value: [defaultSettings.outboundRate, BURST_SECONDS * defaultSettings.outboundRate],
    unit: '# a second, # at once',
    setting: '`outboundRate`',
    filledBy: 'that device',
    next: 'It gets 4.29 with Max-Age. Other devices are counted separately.',
    freedWhen: 'The rate allows the next',
    test: 'test/server/station/outbound-api.test.ts',
  },
  'Calls to the outside under way': {
    value: [
      defaultSettings.outboundPerDevice,
      defaultSettings.outbound,
      defaultSettings.outboundPerDevice,
      defaultSettings.outboundPerDevice,
      CROWDED_PER_DEVICE,
      defaultSettings.outbound / 2,
      defaultSettings.outbound,
    ],
    unit: '# of one device, # in all',
    setting: '`outboundPerDevice`, `outbound`',
    filledBy: 'attached devices whose service or provider is slow',
    next:
      'A device with #: 4.29 with Max-Age 1. Another device has its own #, but only # while # are taken. When # are, which takes 144 ' +
      'devices: 4.29.',
    freedWhen: 'The call ends: services within 60 s, pushes within 100 s',
    test: 'test/server/station/outbound-api.test.ts',
  },
  WebSockets: {
    value: defaultSettings.webSockets,
    setting: '`webSockets`, `--websockets`',
    filledBy: 'anyone with 40 addresses, or with credentials of this station',
    next:
      'A slot: the oldest WebSocket without a valid credential is closed, once it is two seconds old. Where all have shown one: 503 ' +
      'with a reason. UDP and REST are answered.',
    freedWhen: 'TCP closes; 10 s without a session; it is closed for another',
    test: ['test/server/station/web-sockets.test.ts', 'test/server/websocket/station.test.ts'],
  },
  'WebSockets of one address': {
    value: defaultSettings.webSocketsPerAddress,
    setting: '`webSocketsPerAddress`, `--websockets-per-address`',
    filledBy: 'anyone at that address, also a page in a browser there, or anyone behind a proxy that is not trusted',
    next: 'At that address: the slot of the oldest without a valid credential, once it is two seconds old; else 503. Elsewhere: a slot.',
    freedWhen: 'As above',
    test: ['test/server/station/web-sockets.test.ts', 'test/server/websocket/station.test.ts'],
  },
  'A WebSocket without a session': {
    value: defaultSettings.webSocketTimeout,
    unit: '#s',
    setting: '`webSocketTimeout`',
    filledBy: 'anyone',
    next: 'Its slot: it is closed with 1008',
    freedWhen: 'At once',
    test: 'test/e2e/station-websocket.test.ts',
  },
};
