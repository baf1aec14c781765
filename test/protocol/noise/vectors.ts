/**
 * Published Noise vectors (the cacophony set, as shipped with the Haskell and Rust implementations): 25519, ChaChaPoly,
 * SHA256. All share keys, prologue and payloads. Messages after the handshake are transport messages. The sender
 * alternates throughout.
 */
import type { Pattern } from '../../../protocol/noise/index.ts';

export const keys = {
  prologue: '4a6f686e2047616c74',
  initiatorStatic: 'e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1',
  initiatorStaticPublic: '6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a',
  initiatorEphemeral: '893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a',
  responderStatic: '4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893',
  responderStaticPublic: '31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62',
  responderEphemeral: 'bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b',
};

export const payloads = [
  '4c756477696720766f6e204d69736573',
  '4d757272617920526f746862617264',
  '462e20412e20486179656b',
  '4361726c204d656e676572',
  '4a65616e2d426170746973746520536179',
  '457567656e2042f6686d20766f6e2042617765726b',
];

/** Patterns of Noise rev. 34 §7.5 that the protocol itself does not use. */
export const patterns: readonly Pattern[] = [
  {
    name: 'NK',
    known: { initiator: false, responder: true },
    messages: [
      ['e', 'es'],
      ['e', 'ee'],
    ],
  },
  {
    name: 'KK',
    known: { initiator: true, responder: true },
    messages: [
      ['e', 'es', 'ss'],
      ['e', 'ee', 'se'],
    ],
  },
  {
    name: 'XK',
    known: { initiator: false, responder: true },
    messages: [
      ['e', 'es'],
      ['e', 'ee'],
      ['s', 'se'],
    ],
  },
  {
    name: 'IK',
    known: { initiator: false, responder: true },
    messages: [
      ['e', 'es', 's', 'ss'],
      ['e', 'ee', 'se'],
    ],
  },
];

export interface Vector {
  readonly hash: string;
  readonly messages: readonly string[];
}

export const vectors: Readonly<Record<string, Vector>> = {
  XX: {
    hash: 'c8e5f64e846193be2a834104c2a009868d6c9f3bd3c186299888b488b2f1f58e',
    messages: [
      'ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69736573',
      '95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f14480884381cbad1f276e038c48378ffce2b65285e08d6b68aaa3629a5a8639392490e5b9bd5269c2f1e4f488ed8831161f19b7815528f8982ffe09be9b5c412f8a0db50f8814c7194e83f23dbd8d162c9326ad',
      'c7195ffacac1307ff99046f219750fc47693e23c3cb08b89c2af808b444850a80ae475b9df0f169ae80a89be0865b57f58c9fea0d4ec82a286427402f113e4b6ae769a1d95941d49b25030',
      '96763ed773f8e47bb3712f0e29b3060ffc956ffc146cee53d5e1df',
      '3e40f15f6f3a46ae446b253bf8b1d9ffb6ed9b174d272328ff91a7e2e5c79c07f5',
      'eb3f3515110702e047a6c9da4478b6ead94873c11c0f2d710ddb3f09fce024b3a58502ae3f',
    ],
  },
  NK: {
    hash: '2efa38a9c7c93ac98f3a097af25c2f58b9e7673787717bc27e98827118c2c1a5',
    messages: [
      'ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79448134d00711fdb390a0d178fa008f6d47d2891e5ea18ae136c3b4c23ac384efb0',
      '95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088438ea16e3701bc0d77744f117bee22451c9afa7f4cdbbcff00c04a8ee0913c88',
      'a62de29ce27cb80245d440d986ed816c156e9d757d7008df2198b0',
      '174a35f11c689f4530d7208618e0564ae12f2f50ba8eb4df5382ff',
      '337e475ebb8eae60f91974c4e455a5af38d1d8628d1803b160d60442874b0a1777',
      '047e80e060b7bb08b53c5a23dfe9920cae135b9d1dc6302fc475003062723700366346ac9d',
    ],
  },
  KK: {
    hash: '24c6b51ecb76277140ca018b5985bc9f03de321dae2d34dcae433dafef0131d9',
    messages: [
      'ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79440177015efc1fe7a37c629af7120a96274e6ab7afcc9261901d0e09ae32a5bb96',
      '95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843b274d3429adc47ca093ba63ef90f8da89fda108db471dccfa4894aa7b00003',
      '966b05bc69ec01b8454d3160a214e6f24a3d884eb31ec2408af63f',
      '0ad887fba4f611bbb4afe44ba3556b8164332ca7d5934634d63d80',
      '012b28ae646ae7830e2c5472cb023eab071c1db3d8413ec69b513b83832f974c2d',
      'bb3e6a48160d9c5971d37f975727294e0d868342db31832e54d07191ab0ca3c3703b5ed3d9',
    ],
  },
  XK: {
    hash: 'cefffc5d1074126cc980ebfe902587ff36ba61dc77d4447ebe0f96dc22ae59d7',
    messages: [
      'ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944a3785af283c991bab613473804356ef6931f83acf64f99c274b93570857cfc5e',
      '95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088433a4534805fa9fe4eb8343ace6609160c767ad9b832e8eea1d9b7a2111818dd',
      '5d8e67b9c1b8e36f5dc674bc5cd2ce243fb5d1710fa57de0370da7cc979015398eaad94603b05498ba9a613d2fd923dcaa6fd4288dfd8d70f419bf737efb4cd37f5da37ebb728849318c82',
      '3205e1265f809505e6edc092839d3156745d2abafbfd946b261e41',
      '470bcb1ae099555ff0d729500df550418d6ee5149d9e40bd2f4c6b3d263cc818d5',
      'd7187ed9d217ba6e91cf596e4871012ccedf7b5bed0d4cb8f7affb020fa17a95a23371e0f6',
    ],
  },
  IK: {
    hash: '0b0f68fb0c27e03ce9b97565995ed4838cc0581b762ef72b062f6a546419fad7',
    messages: [
      'ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944718da798efbcd91528520204f904b9bd6c7413dccdc214d951e15253e39987f18146e8cd0873654207148333479d4d16c289f0294b29960a72f48e0b7bba2e89083169825e59642148d492020664ccf7',
      '95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088435361e70b2ed446e6c9ec387d1d6b3b840f194e373979d241b203c4acafccf5',
      '050e9f3c8fac16b68dbce8f8c4bfbf6617c897f9ada4aa29aa19c8',
      '344233a6cabb7141d80f3da2fedc311d9646bbb0f505afe403a667',
      '62cdeeb172ad7ade7aa7d9e069da5790f12331bfa00177787a1d0810c67dc3b2b4',
      '029bead1b40992327044d409d9a1f3ad8f36c3c452775d557e18bbeb2e8dfcead32d514024',
    ],
  },
};
