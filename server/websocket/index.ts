/** WebSockets of the HTTP server. */
export { acceptUpgrades, type UpgradeOptions } from './upgrades.ts';
