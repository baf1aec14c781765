/** Published messages: RFC 5769 §2, and RFC 8489 appendix B.1. */
const bytes = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'));

/** Transaction id of §2.1 to §2.3. */
export const TRANSACTION = 'b7e7a701bc34d686fa87dfae';

/** §2.1: a request with SOFTWARE, PRIORITY, ICE-CONTROLLED, USERNAME, MESSAGE-INTEGRITY and FINGERPRINT. */
export const request = bytes(`
  00010058 2112a442 b7e7a701bc34d686fa87dfae
  80220010 5354554e207465737420636c69656e74
  00240004 6e0001ff
  80290008 932ff9b151263b36
  00060009 6576746a3a68367659 202020
  00080014 9aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2
  80280004 e57a3bcf`);

/** §2.2: the answer over IPv4, with a space as padding. */
export const responseV4 = bytes(`
  0101003c 2112a442 b7e7a701bc34d686fa87dfae
  8022000b 7465737420766563746f72 20
  00200008 0001a147e112a643
  00080014 2b91f599fd9e90c38c7489f92af9ba53f06be7d7
  80280004 c07d4c96`);

/** §2.3: the answer over IPv6. */
export const responseV6 = bytes(`
  01010048 2112a442 b7e7a701bc34d686fa87dfae
  8022000b 7465737420766563746f72 20
  00200014 0002a1470113a9faa5d3f179bc25f4b5bed2b9d9
  00080014 a382954e4be67bf11784c97c8292c275bfe3ed41
  80280004 c8fb0b4c`);

/** §2.4: a request with long-term authentication. */
export const longTermRequest = bytes(`
  00010060 2112a442 78ad3433c6ad72c029da412e
  00060012 e3839ee38388e383aae38383e382afe382b9 0000
  0015001c 662f2f3439396b39353464364f4c33346f4c39465354767936347341
  0014000b 6578616d706c652e6f7267 00
  00080014 f67024656dd64a3e02b8e0712e85c9a28ca89666`);

/** RFC 8489 B.1: MESSAGE-INTEGRITY-SHA256 of 32 bytes, under SHA-256 of user, realm and password. */
export const sha256Request = bytes(`
  00010090 2112a442 78ad3433c6ad72c029da412e
  001e0020 4a3cf38fef6992bda952c6780417da0f24819415569e60b205c46e41407f1704
  00150029 6f624d61744a6f733241414143662f2f3439396b39353464364f4c33346f4c39465354767936347341 000000
  0014000b 6578616d706c652e6f7267 00
  001d0004 00020000
  001c0020 b5c7bf005b6c52a21c51c5e892f81924136296cb927c43149309278cc6518e65`);
export const sha256Credentials = 'マトリックス:example.org:TheMatrIX';
