/** WebSockets of the HTTP server. */
export { acceptUpgrades, isForWebSocket, type UpgradeOptions } from './upgrades.ts';
