import { describe, expect, it } from 'vitest';
import { fingerprint } from '../../../protocol/identity/index.ts';
import { dial, pair } from '../../support/endpoints.ts';
import { seeds } from '../../support/size.ts';

describe('handshake', () => {
  it('takes one round trip until the client may send, and shows both ends the other key', () => {
    const { network, client, device } = pair(1);
    const connection = dial(client, device);
    const start = network.now;
    expect(network.run(() => connection.state === 'open')).toBe(true);
    expect(network.now - start).toBe(20);
    expect(network.run(() => device.accepted.length === 1)).toBe(true);
    expect(network.now - start).toBe(30);
    const [accepted] = device.accepted;
    expect(client.kinds(connection)).toEqual(['opened']);
    expect(connection.remoteFingerprint).toBe(fingerprint(device.config.identity.publicKey, device.config.crypto));
    expect(accepted!.remoteFingerprint).toBe(fingerprint(client.config.identity.publicKey, client.config.crypto));
    expect(connection.handshakeHash).toEqual(accepted!.handshakeHash);
    expect(connection.info).toEqual({ ProductId: 'p', DeviceId: 'd' });
    expect([connection.verified, accepted!.verified]).toEqual(['none', 'none']);
  });
});
