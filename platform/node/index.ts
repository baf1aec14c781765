/** Everything that the products use from Node. */
export { nodeCrypto } from './crypto.ts';
export { type NodeEnvironmentOptions, nodeEnvironment } from './environment.ts';
export {
  createFile,
  fileError,
  makeDirectory,
  type OwnFiles,
  prepareDirectory,
  readFileIfPresent,
  readJson,
  refuseForeignDirectory,
  replaceFile,
  replaceJson,
  syncDirectory,
  takesNoWrites,
} from './files.ts';
export { reachableAddresses } from './host-interfaces.ts';
export { ownAddress, ownAddresses } from './interfaces.ts';
export { MAX_SOCKET_PATH, serveLocally } from './local-socket.ts';
export { type Lock, ownLock, whileLocked } from './lock.ts';
export { stderrLog } from './log.ts';
export { checkRootCertificates } from './root-certificates.ts';
export { acknowledged, type ByteStream, nextChunk, type PumpResult, pump, resetSocket } from './tcp.ts';
