/**
 * Metadata and platform services of clouds at addresses that are not link-local (those at 169.254.0.0/16 and fe80::/10 are). Whoever reaches one speaks as the
 * machine, so what others may configure, or a name they control, must not lead there.
 */
export const CLOUD_ADDRESSES: readonly string[] = [
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  'fd00:42::42',
  'fd00:c1::a9fe:a9fe',
  'fd00:ec2::/32',
  'fd20:ce::254',
];
