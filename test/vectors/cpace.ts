/** Test vectors of one password exchange (PROTOCOL.md §8), made by `protocol/password/`. */
import { type CpaceMessage, calculateGenerator, confirmationKey, intermediateKey } from '../../protocol/password/cpace.ts';
import { ClientRun, channelIdentifier, DeviceRun, sessionId } from '../../protocol/password/exchange.ts';
import { ristretto255Group as group } from '../../protocol/password/group.ts';
import { deriveValue, passwordBytes, passwordString } from '../../protocol/password/kdf.ts';
import { fingerprintOf } from './handshake.ts';
import { crypto, fixedCrypto, initiator, names, password, responder } from './inputs.ts';
import type { Section } from './values.ts';

/** @param handshakeHash of the connection on which the exchange runs */
export async function cpaceVectors(handshakeHash: Uint8Array): Promise<Section> {
  const { text, salt, run, username, deviceScalar, clientScalar } = password;
  const binding = {
    handshakeHash,
    run,
    username,
    clientFingerprint: fingerprintOf(initiator.static),
    deviceFingerprint: fingerprintOf(responder.static),
    ...names,
  };
  const value = await deriveValue(crypto, passwordBytes(text), salt);
  const device = new DeviceRun(fixedCrypto([deviceScalar]), binding, 1, value);
  const { share } = device;
  const client = ClientRun.answer(fixedCrypto([clientScalar]), binding, 1, value, share);
  const deviceTag = client === null ? null : device.confirm(client.proof);
  if (client === null || !deviceTag || !client.verify(deviceTag)) throw new Error('the password exchange failed');

  const inputs = { prs: passwordString(1, value), ci: channelIdentifier(binding), sid: sessionId(crypto, binding) };
  const ofDevice = { share, ad: encode('device') };
  const ofClient = { share: client.proof.share, ad: encode('client') };
  return {
    title: 'Password exchange',
    values: {
      password: text,
      Kdf: 1,
      Salt: salt,
      Username: username,
      Run: run,
      'product id': names.productId,
      'device id': names.deviceId,
      "device's scalar": deviceScalar,
      "client's scalar": clientScalar,
      'value, by scrypt': value,
      PRS: inputs.prs,
      sid: inputs.sid,
      CI: inputs.ci,
      generator: calculateGenerator(group, inputs),
      'Ya, share of the device': share,
      'Yb, share of the client': client.proof.share,
      ...secrets(inputs.sid, ofDevice, ofClient),
      'Tag of the client': client.proof.tag,
      'Tag of the device': deviceTag,
    },
  };
}

/** The keys on the way to the tags. */
function secrets(sid: Uint8Array, device: CpaceMessage, client: CpaceMessage): Record<string, Uint8Array> {
  const shared = group.scalarMultVfy(password.deviceScalar, client.share)!;
  const intermediate = intermediateKey(group, sid, shared, device, client);
  return { K: shared, ISK: intermediate, mac_key: confirmationKey(sid, intermediate) };
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
